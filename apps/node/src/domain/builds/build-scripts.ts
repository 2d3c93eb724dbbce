/** Path inside the sandbox of the archive that a COPY step unpacks. */
export const archivePath = '/.atoll-files.tar'

/** Creates a folder and its missing parents. Only the new folders get the user as owner. */
export const workdirScript = `
path=$1 user=$2 made=
while [ ! -e "$path" ]; do
  made="$path
$made"
  path=$(dirname "$path")
done
printf '%s' "$made" | while IFS= read -r folder; do
  mkdir "$folder"
  chown "$user:" "$folder"
done
[ -d "$1" ] || { echo "$1 is no folder" >&2; exit 1; }
`

export const userScript = `
id -u "$1" > /dev/null 2>&1 || useradd --create-home --shell /bin/bash "$1"
if [ "$2" = true ]; then
  mkdir -p /etc/sudoers.d
  printf '%s ALL=(ALL:ALL) NOPASSWD:ALL\\n' "$1" > "/etc/sudoers.d/$1"
  chmod 440 "/etc/sudoers.d/$1"
fi
`

/**
 * Copies like a Dockerfile: a folder copies its content, several files need a folder as target, and a single file takes
 * the target's name unless the target is a folder.
 */
export const copyScript = `
source=$1 target=$2 folder=$3 owner=$4 mode=$5
work=$(mktemp -d /.atoll-copy.XXXXXX)
tar -xf ${archivePath} -C "$work" --no-same-owner
rm -f ${archivePath}
case $owner in *:*) ;; *) owner=$owner: ;; esac
chown -R -- "$owner" "$work"
[ -z "$mode" ] || chmod -R "$mode" "$work"
chmod 755 "$work"
cd "$work"
shopt -s nullglob dotglob
if [ -e "./$source" ]; then found=("./$source"); else IFS=; found=(./$source); fi
[ \${#found[@]} -gt 0 ] || { echo "no file is called $source" >&2; exit 1; }
# Links at the target are replaced, not followed.
place() {
  mkdir -p "$target"
  find "$@" -exec cp -a --remove-destination -t "$target" {} +
}
for one in "\${found[@]}"; do
  if [ -d "$one" ]; then
    place "$one" -mindepth 1 -maxdepth 1
  elif [ -n "$folder" ] || [ -d "$target" ] || [ \${#found[@]} -gt 1 ]; then
    place "$one" -maxdepth 0
  else
    mkdir -p "$(dirname "$target")"
    cp -a --remove-destination "$one" "$target"
  fi
done
cd /
rm -rf "$work"
`

/** Writes PATH to a profile file: login shells reset PATH, then read `/etc/profile.d` last. */
export const pathScript = `
mkdir -p /etc/profile.d
printf 'PATH=%s\\nexport PATH\\n' "$1" > /etc/profile.d/atoll-path.sh
`

/**
 * Adds the default user, since most images only have root. The user gets passwordless sudo where the image has sudo.
 */
export const imageSetupScript = `
if [ ! -x /bin/bash ]; then
  echo 'the image has no /bin/bash, by which clients run commands: add it to the image' >&2
  exit 1
fi
if ! grep -q "^$1:" /etc/passwd; then
  if command -v useradd > /dev/null; then
    useradd --create-home --shell /bin/bash "$1"
  else
    adduser -D -s /bin/bash "$1"
  fi
fi
if [ -d /etc/sudoers.d ]; then
  printf '%s ALL=(ALL:ALL) NOPASSWD:ALL\\n' "$1" > "/etc/sudoers.d/$1"
  chmod 440 "/etc/sudoers.d/$1"
fi
if [ -n "$2" ]; then
  shift
  ${pathScript}
fi
`
