import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';

/** Tells a running process from a later one with the same number. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process began and since which boot, where the system tells; empty otherwise. */
  readonly started: string;
}

export async function ownIdentity(): Promise<ProcessIdentity> {
  return { host: hostname(), pid: process.pid, started: await startOf(process.pid) };
}

/** False only if the process has certainly ended. One on another machine cannot be looked at. */
export async function mayBeRunning(identity: ProcessIdentity): Promise<boolean> {
  if (identity.host !== hostname()) return true;
  try {
    process.kill(identity.pid, 0);
  } catch (error) {
    // EPERM: it runs and belongs to somebody else.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const started = await startOf(identity.pid);
  return started === '' || identity.started === '' || started === identity.started;
}

/** Linux tells the start of a process in clock ticks since the boot (proc(5)); elsewhere only the number counts. */
async function startOf(pid: number): Promise<string> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The command in brackets may hold spaces; the fields behind it are the third and later ones.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return `${boot.trim()}:${fields[19] ?? ''}`;
  } catch {
    // Not Linux, or the process has just ended: then kill(0) has told, or will.
    return '';
  }
}
