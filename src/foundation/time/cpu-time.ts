/** Milliseconds of processor time that this thread has used: what it costs, however busy the machine is. */
export function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
