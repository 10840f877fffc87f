# The server in a container: one static binary, no shell, no root. `docker build -t ebb .`
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/ebb ./cmd/ebb && mkdir -m 0750 /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ebb /usr/bin/ebb
COPY --from=build --chown=nonroot:nonroot /out/data /data
COPY LICENSE /usr/share/doc/ebb/copyright
USER nonroot:nonroot
VOLUME /data
EXPOSE 27017 27019
# Other containers reach it. Whoever publishes the port to other machines adds --auth (docs/install.md).
ENTRYPOINT ["/usr/bin/ebb"]
CMD ["serve", "--dbpath", "/data", "--bind_ip_all", "--nounixsocket", "--metricsPort", "27019", "--metricsBindIp", "*"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/bin/ebb", "ping"]
