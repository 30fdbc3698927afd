# The image of Sluice for clusters. docs/install.md has the commands that build it reproducibly and with an SBOM.
ARG NODE_IMAGE=node:24-trixie-slim
ARG DEBIAN_IMAGE=debian:trixie-slim

# The npm package of this checkout, with the dependencies that the lock file pins.
FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm pack --pack-destination /tmp \
 && mkdir /app && tar -xzf /tmp/sluice-*.tgz -C /app --strip-components=1 --no-same-owner \
 && cp package-lock.json /app && cd /app && npm ci --omit=dev --ignore-scripts

# Node.js without npm, on the Debian that it was linked for.
FROM ${DEBIAN_IMAGE}
# Packages of this day from snapshot.debian.org, such as 20261101T000000Z; the default is the present ones.
ARG DEBIAN_SNAPSHOT=
# ssh refuses a user without a name. tini ends child processes that their own parent has left.
RUN if [ -n "$DEBIAN_SNAPSHOT" ]; then \
      sed -Ei "s#deb.debian.org/(debian|debian-security)\$#snapshot.debian.org/archive/\1/$DEBIAN_SNAPSHOT#" /etc/apt/sources.list.d/debian.sources; \
    fi \
 && apt-get -o Acquire::Check-Valid-Until=false update \
 && apt-get install -y --no-install-recommends ca-certificates git libatomic1 libstdc++6 openssh-client tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
 && echo 'sluice:x:65532:65532::/var/cache/sluice:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'sluice:x:65532:' >> /etc/group \
 && install -d -o 65532 -g 65532 /var/cache/sluice \
 && ln -s /app/bin/sluice.js /usr/local/bin/sluice
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app /app
USER 65532:65532
WORKDIR /var/cache/sluice
EXPOSE 8443
ENTRYPOINT ["/usr/bin/tini", "--", "sluice"]
CMD ["serve"]
