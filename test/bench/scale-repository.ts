import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { git, kptfile, manifest } from './synthetic-repository.ts';

export type Layout = 'nested' | 'flat';

export interface ScaleOptions {
  readonly path: string;
  readonly packages: number;
  readonly revisions: number;
  readonly layout: Layout;
  /** Commits on main before each publication that touch none of the packages. Default: none. */
  readonly between?: number;
}

const MANIFESTS = 10;
const MAX_DRAFTS = 600;
/** Bytes that the root trees of a flat repository may use together before commits are shared. */
const MAX_ROOT_BYTES = 400_000_000;

/**
 * Fills a new bare repository through one `git fast-import` that makes no refs, and writes `packed-refs` itself: otherwise Git would need minutes for a hundred thousand
 * tags. Manifests are shared by all packages; the Kptfile of each revision is its own.
 */
export async function synthesizeAtScale(options: ScaleOptions): Promise<void> {
  const { path, packages, revisions } = options;
  await git(['init', '--quiet', '--bare', '--initial-branch=main', path]);
  const marks = join(path, 'bench-marks');
  const child = spawn('git', ['-C', path, 'fast-import', '--quiet', '--force', `--export-marks=${marks}`], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const write = async (text: string) => {
    if (!child.stdin.write(text)) await once(child.stdin, 'drain');
  };
  const refs = new Map<string, number>();
  let mark = 0;
  for (let part = 0; part < MANIFESTS; part++) await write(`blob\nmark :${++mark}\n${data(manifest(0, part, 1))}`);
  const perCommit = publicationsPerCommit(options);
  const commit = (subject: string, annotation?: object) =>
    `commit refs/heads/main\nmark :${++mark}\ncommitter bench <bench@example.com> ${1_767_225_600 + mark} +0000\n` +
    data(`${subject}\n${annotation === undefined ? '' : `\nkpt:${JSON.stringify(annotation)}\n`}`);
  for (let revision = 1; revision <= revisions; revision++) {
    for (let number = 0; number < packages; number++) {
      const name = scalePackage(options.layout, number);
      for (let spare = 0; spare < (options.between ?? 0); spare++)
        await write(`${commit('Between')}M 100644 inline README.md\n${data(`${mark}\n`)}`);
      if (perCommit === 1) {
        const annotation = { package: name, workspaceName: `w${revision}`, revision: `${revision}` };
        await write(commit(`Approving package revision ${name}/${revision}`, annotation));
      } else if (number % perCommit === 0) await write(commit('Published together'));
      await write(`M 100644 inline ${name}/Kptfile\n${data(kptfile(number, revision))}`);
      if (revision === 1)
        for (let part = 0; part < MANIFESTS; part++) await write(`M 100644 :${part + 1} ${name}/config-${part}.yaml\n`);
      refs.set(`refs/tags/${name}/v${revision}`, mark);
    }
  }
  refs.set('refs/heads/main', mark);
  for (let number = 0; number < draftsOf(packages); number++) {
    const name = scalePackage(options.layout, number);
    refs.set(`refs/heads/drafts/${name}/next`, mark);
  }
  child.stdin.end();
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
  await writeRefs(path, refs, await readFile(marks, 'latin1'));
}

export function draftsOf(packages: number): number {
  return Math.min(MAX_DRAFTS, packages / 10);
}

/** Nested: a hundred packages in a folder. */
export function scalePackage(layout: Layout, number: number): string {
  return layout === 'flat' ? `package-${number}` : `team-${Math.floor(number / 100)}/package-${number}`;
}

/** Every publication in a flat repository of 30,000 packages writes a root tree of more than a megabyte. */
export function publicationsPerCommit({ packages, revisions, layout }: ScaleOptions): number {
  const rootBytes = layout === 'flat' ? packages * 40 : 0;
  return Math.max(1, Math.ceil((rootBytes * packages * revisions) / MAX_ROOT_BYTES));
}

async function writeRefs(path: string, refs: ReadonlyMap<string, number>, marks: string): Promise<void> {
  const oids = new Map(
    marks
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(1).split(' ') as [string, string]),
  );
  const packed = ['# pack-refs with: peeled fully-peeled sorted '];
  for (const [name, mark] of [...refs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const oid = oids.get(`${mark}`);
    if (oid === undefined) throw new Error(`${name} was not made`);
    if (!name.startsWith('refs/heads/')) {
      packed.push(`${oid} ${name}`);
      continue;
    }
    const file = join(path, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${oid}\n`);
  }
  await writeFile(join(path, 'packed-refs'), `${packed.join('\n')}\n`);
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}
