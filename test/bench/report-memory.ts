// Loaded into a server before its program: reports its resident memory after a full garbage collection, on request.
process.on('message', () => {
  for (let pass = 0; pass < 3; pass++) globalThis.gc?.();
  process.send?.(process.memoryUsage.rss());
});
// The channel for requests does not keep the process alive.
process.channel?.unref();
