#!/bin/sh
# First process of every image: takes secrets out of files, looks at what a container can be given wrongly, and
# becomes `march`, so that signals reach it. What is wrong is said in one line; 78 is EX_CONFIG of sysexits(3).
set -eu

refuse() {
    printf 'march-entrypoint: %s\n' "$1" >&2
    exit 78
}

# An image says what it was built for; a file that is not there says nothing (another way of installing).
built_for=$(cat /usr/local/share/march/architecture 2>/dev/null || true)
machine=$(uname -m)
if [ -n "$built_for" ] && [ "$built_for" != "$machine" ]; then
    refuse "this image is built for $built_for and this machine is $machine; pull or build it with --platform"
fi

# NAME_FILE=path becomes NAME=content where NAME is ours or sounds like a secret or an address with one in it. Other
# libraries' paths also end in _FILE (SSL_CERT_FILE, NCCL_TOPO_FILE), a few even like a secret: they stay paths.
is_a_secret() {
    case $1 in
        AWS_WEB_IDENTITY_TOKEN | AWS_CONTAINER_AUTHORIZATION_TOKEN | CLIENT_KEY | *SSL_KEY | *TLS_KEY) return 1 ;;
        MARCH_* | *TOKEN | *SECRET | *PASSWORD | *USERNAME | *_KEY | *_KEY_ID | *_URI | *_URL) ;;
        *) return 1 ;;
    esac
}

# The expansion is split into names, which hold no blanks. A line of some value may look like a name; it is not set.
for variable in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*_FILE\)=.*/\1/p'); do
    name=${variable%_FILE}
    eval "file=\${$variable-}"
    if [ -z "$file" ] || ! is_a_secret "$name"; then
        continue
    fi
    eval "already=\${$name+set}"
    [ -z "$already" ] || refuse "$name and $variable are both set; unset one of them"
    [ -e "$file" ] || refuse "$variable: $file does not exist; mount the secret there"
    [ -f "$file" ] || refuse "$variable: $file is not a file; name the secret's file"
    [ -r "$file" ] || refuse "$variable: $file cannot be read by user $(id -u); give it to that user or its group"
    content=$(cat "$file")
    [ -n "$content" ] || refuse "$variable: $file is empty; write the secret into it"
    export "$name=$content"
    unset "$variable" content
done

# Written to and not only opened, since a full disk still opens files.
volume=${HOME:-/var/lib/march}
[ -d "$volume" ] || refuse "$volume does not exist; mount a volume there"
probe=$(mktemp "$volume/.probe.XXXXXX" 2>/dev/null) ||
    refuse "$volume cannot be written by user $(id -u); mount a volume that this user may write, or free space on it"
if ! head -c 4096 /dev/zero >"$probe" 2>/dev/null; then
    rm -f "$probe"
    refuse "$volume is full; free space or mount a larger volume"
fi
rm -f "$probe"

# Programs of the images that are no command of `march` and need the same secrets.
case ${1-} in
    mlflow | python | ray) exec "$@" ;;
esac
exec march "$@"
