"""Elaborates SystemVerilog files with slang: `lint.py FILE...`. Exit status 1 if it has anything to say."""

import sys

from pyslang.driver import Driver

driver = Driver()
driver.addStandardArgs()
# A loop's variable may be that of several processes.
words = ["slang", "--std", "1800-2017", "-Wdefault", "-Werror", "-Wno-multiple-always-assigns", *sys.argv[1:]]
fine = driver.parseCommandLine(" ".join(words)) and driver.processOptions() and driver.parseAllSources()
fine = fine and driver.runFullCompilation(False)
sys.exit(0 if fine else 1)
