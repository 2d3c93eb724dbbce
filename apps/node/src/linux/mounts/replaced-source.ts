/**
 * Shell script: unmounts the folder `$2` if it shows another folder than `$1` is now. Mounts outlive the data directory: when that
 * is deleted and made again at the same path, the mount of the old one still shows the deleted folder. Lazily: sandboxes that
 * use the old folder keep it until they end.
 */
export const unmountReplaced = `
if [ -e "$1" ] && ! [ "$1" -ef "$2" ] && grep -q " $2 " /proc/self/mountinfo; then umount -n -l "$2"; fi
`
