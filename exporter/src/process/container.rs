//! The container a process runs in, out of its cgroups or, where a cgroup namespace hides them, its
//! mounts. An id is 64 hexadecimal digits; anything else is no id.

/// Digits of a container id.
const ID_DIGITS: usize = 64;

/// The id of the innermost container, from the texts of `/proc/PID/cgroup` and
/// `/proc/PID/mountinfo`.
#[must_use]
pub fn container_id(cgroup: &str, mountinfo: &str) -> Option<String> {
    cgroup
        .lines()
        .find_map(id_of_cgroup)
        .or_else(|| mountinfo.lines().find_map(id_of_mount))
        .map(str::to_owned)
}

/// `HIERARCHY:CONTROLLERS:PATH`, the innermost component of the path that ends in an id.
fn id_of_cgroup(line: &str) -> Option<&str> {
    let path = line.splitn(3, ':').nth(2)?;
    path.rsplit('/').find_map(|component| {
        // A monitor beside the container, in a cgroup that bears its id.
        if component.contains("conmon-") {
            return None;
        }
        let name = component.strip_suffix(".scope").unwrap_or(component);
        name.rsplit(['-', ':']).next().filter(|id| is_id(id))
    })
}

/// A file that runtimes mount into a container from a directory named by its id. A pod's sandbox
/// has such a directory too, below `sandboxes`: that is no container of the process.
fn id_of_mount(line: &str) -> Option<&str> {
    let mut fields = line.split(' ');
    let root = fields.nth(3)?;
    let point = fields.next()?;
    if !matches!(point, "/etc/hostname" | "/etc/hosts" | "/etc/resolv.conf") {
        return None;
    }
    let mut parts = root.split('/');
    parts.find(|&part| part == "containers" || part == "overlay-containers")?;
    parts.find(|id| is_id(id))
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[track_caller]
    fn check(cgroup: &str, mountinfo: &str, expected: Option<&str>) {
        let fill = |text: &str| text.replace("ID", ID);
        assert_eq!(container_id(&fill(cgroup), &fill(mountinfo)).as_deref(), expected);
    }

    #[test]
    fn cgroup_forms() {
        check("11:cpu:/docker/ID\n1:name=systemd:/docker/ID", "", Some(ID));
        check("0::/system.slice/docker-ID.scope", "", Some(ID));
        check(
            "0::/system.slice/containerd.service/kubepods-besteffort-pod1.slice:cri-containerd:ID",
            "",
            Some(ID),
        );
        check("0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-ID.scope", "", Some(ID));
        check("0::/kubepods.slice/kubepods-pod12.slice/crio-ID.scope/container", "", Some(ID));
        check("0::/machine.slice/libpod-ID.scope/container", "", Some(ID));
        check("4:memory:/kubepods/burstable/pod1234-56/ID", "", Some(ID));
    }

    #[test]
    fn the_innermost_container_wins() {
        let outer = "f".repeat(64);
        check(&format!("0::/docker/{outer}/docker/ID"), "", Some(ID));
        check("0::/docker/ID/user.slice/session-1.scope", "", Some(ID));
    }

    #[test]
    fn mounts_when_cgroups_are_hidden() {
        let docker = "100 99 8:1 /var/lib/docker/containers/ID/hostname /etc/hostname rw - ext4 /dev/sda1 rw";
        check("0::/", docker, Some(ID));
        let podman =
            "1 2 0:3 /containers/storage/overlay-containers/ID/userdata/hosts /etc/hosts rw - tmpfs t rw";
        check("0::/", podman, Some(ID));
        let sandbox = "1 2 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/ID/hostname /etc/hostname rw - x x rw";
        check("0::/", sandbox, None);
        check("0::/", "1 2 8:1 /var/lib/docker/containers/ID/x /data rw - ext4 x rw", None);
    }

    #[test]
    fn no_container() {
        check("0::/user.slice/user-1000.slice/session-2.scope", "", None);
        check("0::/system.slice/crio-conmon-ID.scope", "", None);
        check("", "", None);
        check("junk\n::\n", "junk", None);
        check(&format!("0::/docker/{}", &ID[1..]), "", None);
        check("0::/docker/ID0", "", None);
        check(&format!("0::/docker/{}", ID.to_uppercase()), "", None);
    }
}
