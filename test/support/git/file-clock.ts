import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

/** Waits until the coarse clock of the file system has moved, so that what is written next has another time than what is there. */
export async function nextFileTime(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clock-'));
  const file = join(folder, 'time');
  const time = () => {
    writeFileSync(file, '');
    return statSync(file, { bigint: true }).mtimeNs;
  };
  try {
    const start = time();
    while (time() === start) await turn();
  } finally {
    rmSync(folder, { recursive: true });
  }
}
