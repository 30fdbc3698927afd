// Writes a data folder in the format of this version to test/fixtures/data-folders/<name>. Run by `npm run data-folder -- <name>` when a test
// reports that no checked-in folder has the present format. Earlier folders stay: later versions open all of them.
import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { toJson } from '../src/cli/output/structured.ts';
import { DATA_FOLDERS, describeDataFolder, formatsOf, repositoryOf, writeDataFolder } from './data-folder.ts';

const NOT_KEPT = /^(?:repositories|.*-lock|.*-(?:wal|shm))$/;

const [name = ''] = process.argv.slice(2);
if (!/^[a-z0-9-]+$/.test(name)) throw new Error('name the folder, such as 2027-01: npm run data-folder -- 2027-01');
const target = join(DATA_FOLDERS, name);
const work = await mkdtemp(join(tmpdir(), 'sluice-data-folder-'));
try {
  const data = join(work, 'data');
  await writeDataFolder(data);
  const description = await describeDataFolder(data);
  // Without --recursive: an existing folder is never replaced.
  await mkdir(DATA_FOLDERS, { recursive: true });
  await mkdir(target);
  await writeFile(join(target, 'formats.json'), toJson(await formatsOf(data)));
  await writeFile(join(target, 'description.json'), toJson(description));
  await cp(data, join(target, 'data'), { recursive: true, filter: (path) => !NOT_KEPT.test(basename(path)) });
  execFileSync('git', [
    '--git-dir',
    repositoryOf(data),
    'bundle',
    'create',
    '--quiet',
    join(target, 'apps.bundle'),
    '--all',
  ]);
} finally {
  await rm(work, { recursive: true, force: true });
}
