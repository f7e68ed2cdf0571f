//! Network interfaces of the kernel (netdevice(7)), for all drivers that use one.

mod control;
mod holder;
mod netlink;
pub(super) mod packet;
mod settings;
mod view;
mod watch;

pub(super) use self::control::{Control, Interface, request};
pub(super) use self::holder::holder;
pub(super) use self::view::View;
pub(super) use self::watch::Watch;
