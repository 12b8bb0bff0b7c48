#!/bin/sh
# Writes into a Dockerfile the digests that its base images' tags have today, and says what changed: pin.sh DOCKERFILE
set -eu
dockerfile=$1
sed -n 's/^ARG [A-Z_]*_IMAGE=\(.*\)@\(sha256:.*\)$/\1 \2/p' "$dockerfile" | while read -r image pinned; do
    now=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
    if [ "$now" = "$pinned" ]; then
        echo "$image: as pinned"
    else
        sed -i "s|$image@$pinned|$image@$now|" "$dockerfile"
        echo "$image: $pinned -> $now"
    fi
done
