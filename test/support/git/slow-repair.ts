/**
 * A process that repairs a mirror: prints `fetched`, and does the rest once its input ends. Then prints `repaired`.
 * Arguments: mirror, origin.
 */
import fs from 'node:fs';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { repairMirror } from '../../../src/git/maintenance/repair-mirror.ts';
import { DEFAULT_TIMEOUTS } from '../../../src/git/process/engine-options.ts';
import { git } from './git-cli.ts';

const [gitDir = '', origin = ''] = process.argv.slice(2);
await repairMirror({
  ...{ gitDir, clock: systemClock, timeouts: DEFAULT_TIMEOUTS, signal: undefined },
  fetchInto: async (path) => {
    git(path, ['fetch', '-q', origin, '+refs/*:refs/*']);
    fs.writeSync(1, 'fetched\n');
    await text(process.stdin);
  },
});
fs.writeSync(1, 'repaired\n');
