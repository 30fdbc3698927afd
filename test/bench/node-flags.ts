import { readFileSync } from 'node:fs';

const [firstLine = ''] = readFileSync(new URL('../../bin/sluice.js', import.meta.url), 'utf8').split('\n');

/** The options of Node with which the command, and its stand-ins here, are started. */
export const NODE_FLAGS: readonly string[] = firstLine.split(' ').filter((word) => word.startsWith('--'));
