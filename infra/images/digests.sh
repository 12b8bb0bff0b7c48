#!/bin/sh
# Writes into infra/kubernetes/components/site which images a registry holds, by digest: digests.sh REGISTRY KUSTOMIZATION
set -eu
registry=$1 file=$2
sed -n 's/^  - {name: \(march-[a-z-]*\), .*}$/\1/p' "$file" | while read -r name; do
    tag=$(sed -n '0,/^version = "\(.*\)"/s//\1/p' "$(dirname "$0")/../../pyproject.toml")
    if digest=$(docker buildx imagetools inspect "$registry/$name:$tag" --format '{{.Manifest.Digest}}'); then
        sed -i "s|^  - {name: $name, .*}$|  - {name: $name, newName: $registry/$name, digest: $digest}|" "$file"
        echo "$name: $digest"
    else
        echo "$name: not in $registry"
    fi
done
