import { readdirSync, readFileSync } from 'node:fs';

/** Current use of resources by a process of this machine (Linux). */
export interface ProcessLoad {
  /** Seconds of CPU since its start, of itself and of its children, also of those that have ended. */
  readonly cpu: number;
  /** Resident bytes, without its children's. */
  readonly memory: number;
  readonly children: number;
  readonly openFiles: number;
}

const TICKS_PER_SECOND = 100;
const PAGE = 4096;

export function processLoad(pid: number): ProcessLoad {
  const own = statOf(pid);
  const children = processes().filter((child) => child.parent === pid);
  const ofChildren = children.reduce((sum, { ticks }) => sum + ticks, 0);
  return {
    cpu: (own.ticks + own.ticksOfEnded + ofChildren) / TICKS_PER_SECOND,
    memory: Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE,
    children: children.length,
    openFiles: readdirSync(`/proc/${pid}/fd`).length,
  };
}

interface ProcessStat {
  readonly parent: number;
  readonly ticks: number;
  readonly ticksOfEnded: number;
}

function processes(): ProcessStat[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return [statOf(Number(name))];
    } catch {
      // It ended during the measurement.
      return [];
    }
  });
}

/** See proc(5); the name of the program, in brackets, may contain anything. */
function statOf(pid: number): ProcessStat {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [parent = 0, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [1, 11, 12, 13, 14].map(
    (at) => fields[at],
  );
  return { parent, ticks: user + system, ticksOfEnded: endedUser + endedSystem };
}
