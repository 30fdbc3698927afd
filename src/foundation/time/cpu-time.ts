/** Milliseconds of processor time that this thread has used, which do not depend on the load of the machine. */
export function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
