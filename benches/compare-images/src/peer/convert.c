/* Raw JUNGFRAU pixels to photons, one pixel after the other: the plain C that the converter is compared with.
 *
 * Tables have three planes of n pixels, one for each gain. A masked pixel, an error code or invalid gain bits give
 * INT16_MIN, a saturated pixel INT16_MAX. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static inline int16_t
photons(uint16_t raw, const float *pedestal, const float *gain, const uint8_t *bad, size_t n, size_t i)
{
	unsigned stage = raw >> 14;

	if (bad[i] || stage == 2 || raw == 0x4000 || raw == 0xffff)
		return INT16_MIN;
	if (raw == 0xc000)
		return INT16_MAX;
	if (stage == 3)
		stage = 2;
	float value = rintf(((float)(raw & 0x3fff) - pedestal[stage * n + i]) / gain[stage * n + i]);
	if (value > INT16_MAX)
		return INT16_MAX;
	if (value < -INT16_MAX)
		return -INT16_MAX;
	return (int16_t)value;
}

/* Converts n pixels. */
void
peer_convert(const uint16_t *raw, const float *pedestal, const float *gain, const uint8_t *bad, size_t n, int16_t *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = photons(raw[i], pedestal, gain, bad, n, i);
}

/* Converts an image and lists the pixels of at least `threshold` photons, row by row (CSR). `values` and `columns`
 * hold rows * width pixels, `starts` rows + 1. Returns the number of pixels listed, which the veto judges. */
size_t
peer_convert_veto_csr(const uint16_t *raw, const float *pedestal, const float *gain, const uint8_t *bad, size_t rows,
		      size_t width, int16_t threshold, int16_t *out, int16_t *values, uint32_t *columns,
		      uint32_t *starts)
{
	size_t n = rows * width, listed = 0;

	for (size_t row = 0; row < rows; row++) {
		starts[row] = listed;
		for (size_t column = 0; column < width; column++) {
			size_t i = row * width + column;
			int16_t value = photons(raw[i], pedestal, gain, bad, n, i);

			out[i] = value;
			if (value >= threshold) {
				values[listed] = value;
				columns[listed] = column;
				listed++;
			}
		}
	}
	starts[rows] = listed;
	return listed;
}
