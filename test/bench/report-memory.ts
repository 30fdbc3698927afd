// Loaded into a server before its program: tells its resident memory after a full collection of garbage, when it is asked to.
process.on('message', () => {
  for (let pass = 0; pass < 3; pass++) globalThis.gc?.();
  process.send?.(process.memoryUsage.rss());
});
// To be asked is no reason to go on living.
process.channel?.unref();
