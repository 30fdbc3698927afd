// Writes the CustomResourceDefinitions of Sluice's kinds to deploy/crds. Run by `npm run crds`; a test fails when they are not current.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crdFiles } from '../src/resource/kinds/crd-files.ts';

const folder = join(resolve(dirname(fileURLToPath(import.meta.url)), '..'), 'deploy', 'crds');
mkdirSync(folder, { recursive: true });
const files = crdFiles();
for (const old of readdirSync(folder)) if (!files.has(old)) rmSync(join(folder, old));
for (const [name, text] of files) writeFileSync(join(folder, name), text);
