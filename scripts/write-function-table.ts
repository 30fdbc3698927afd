// Writes the table of built-in functions into docs/functions.md. Run by `npm run functions`; a test fails when it is not current.
import { readFileSync, writeFileSync } from 'node:fs';
import { withFunctionTable } from '../src/cli/fn/function-table.ts';
import { builtIns } from '../src/function/built-in/index.ts';

const page = new URL('../docs/functions.md', import.meta.url);
writeFileSync(page, withFunctionTable(readFileSync(page, 'utf8'), builtIns));
