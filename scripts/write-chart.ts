// Writes the templates of the Helm chart from the manifests for kustomize in deploy. Run by `npm run chart`; a test fails when they are not
// current.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chartTemplates, HAND_WRITTEN } from './chart-templates.ts';

const deploy = fileURLToPath(new URL('../deploy/', import.meta.url));
const folder = join(deploy, 'chart/templates');
mkdirSync(folder, { recursive: true });
const files = chartTemplates(deploy);
for (const old of readdirSync(folder)) if (!files.has(old) && !HAND_WRITTEN.has(old)) rmSync(join(folder, old));
for (const [name, text] of files) writeFileSync(join(folder, name), text);
