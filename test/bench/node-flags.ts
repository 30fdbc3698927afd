import { readFileSync } from 'node:fs';

const [firstLine = ''] = readFileSync(new URL('../../bin/sluice.js', import.meta.url), 'utf8').split('\n');

/** With these options of Node the command is started, and so is what stands for it here. */
export const NODE_FLAGS: readonly string[] = firstLine.split(' ').filter((word) => word.startsWith('--'));
