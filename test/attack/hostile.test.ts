import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../support/scratch-repository.ts';

interface RawEntry {
  readonly mode: string;
  readonly name: string;
  readonly oid: string;
}

/** Writes what git itself would refuse to write. */
class RawGit {
  readonly #scratch: Scratch;

  constructor(scratch: Scratch) {
    this.#scratch = scratch;
  }

  blob(text: string): string {
    return this.#hash('blob', Buffer.from(text));
  }

  tree(entries: readonly RawEntry[]): string {
    return this.#hash(
      'tree',
      Buffer.concat(
        entries.flatMap(({ mode, name, oid }) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')]),
      ),
    );
  }

  /** A draft branch that holds one package folder. */
  draft(packageName: string, tree: string): void {
    const parent = this.#git(['rev-parse', 'refs/heads/main']);
    const root = this.tree([{ mode: '40000', name: packageName, oid: tree }]);
    const text = `tree ${root}\nparent ${parent}\nauthor m <m@example.com> 1767225600 +0000\ncommitter m <m@example.com> 1767225600 +0000\n\npushed\n`;
    const commit = this.#hash('commit', Buffer.from(text));
    this.#git(['update-ref', `refs/heads/drafts/${packageName}/v1`, commit]);
  }

  #hash(type: string, data: Buffer): string {
    return this.#git(['hash-object', '-t', type, '-w', '--literally', '--stdin'], data);
  }

  #git(args: readonly string[], input?: Buffer): string {
    return execFileSync('git', ['-C', this.#scratch.path, ...args], { input, maxBuffer: 1 << 28 })
      .toString()
      .trim();
  }
}

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n';

test('hostile trees are listed, can be read, and cannot be written further', async () => {
  await using scratch = await scratchRepository();
  const raw = new RawGit(scratch);
  const kptfile = { mode: '100644', name: 'Kptfile', oid: raw.blob(KPTFILE) };
  const evil = raw.blob('evil');
  const cases: Record<string, RawEntry> = {
    'link-out': { mode: '120000', name: 'link', oid: raw.blob('/etc/passwd') },
    submodule: { mode: '160000', name: 'module', oid: '1'.repeat(40) },
    dots: { mode: '100644', name: '..', oid: evil },
    'dot-git': { mode: '100644', name: '.git', oid: evil },
    'dot-git-alias': { mode: '100644', name: 'GIT~1', oid: evil },
    newline: { mode: '100644', name: 'a\nb.yaml', oid: evil },
    escape: { mode: '100644', name: '\u001b[31mred\u0007.yaml', oid: evil },
    slash: { mode: '100644', name: 'a/../../b', oid: evil },
    missing: { mode: '100644', name: 'gone.yaml', oid: '2'.repeat(40) },
  };
  for (const [name, entry] of Object.entries(cases)) {
    raw.draft(name, raw.tree(entry.name < 'Kptfile' ? [entry, kptfile] : [kptfile, entry]));
  }
  raw.draft('link-kptfile', raw.tree([{ mode: '120000', name: 'Kptfile', oid: raw.blob('../other/Kptfile') }]));
  raw.draft('kptfile-folder', raw.tree([{ mode: '40000', name: 'Kptfile', oid: raw.tree([kptfile]) }]));
  raw.draft('not-a-tree', raw.blob('a blob in place of a tree'));
  const { store } = await scratch.open();
  expect(
    store
      .list()
      .map((revision) => revision.key.package)
      .sort(),
  ).toEqual([...Object.keys(cases), 'kptfile-folder', 'link-kptfile', 'not-a-tree'].sort());
  for (const name of ['link-kptfile', 'kptfile-folder', 'not-a-tree']) {
    expect(store.get(`packages.${name}.v1`).problem).toBe('there is no Kptfile');
  }
  const content = await store.content('packages.link-out.v1');
  expect([...content.files.keys()]).toEqual(['Kptfile']);
  expect(content.skipped).toEqual(['link (symbolic link)']);
  expect((await store.content('packages.submodule.v1')).skipped).toEqual(['module (submodule)']);
  const outcomes = new Map<string, string>();
  for (const name of Object.keys(cases)) {
    const change = store.change(`packages.${name}.v1`, { files: new Map([['new.yaml', Buffer.from('a: 1\n')]]) }, anna);
    outcomes.set(
      name,
      await change.then(
        () => 'changed',
        (error: Error) => `${error.name} ${error.message}`,
      ),
    );
  }
  // Nothing may leave the repository or end the process; a package that cannot be read says so and stays as it is.
  expect(outcomes.get('missing')).toMatch(/^DamageError packages.missing.v1: 2{40} is referred to/);
  for (const outcome of outcomes.values()) expect(outcome).toMatch(/^(changed$|SluiceError |DamageError )/);
  expect(store.list()).toHaveLength(Object.keys(cases).length + 3);
});

test('a package of 100,000 files is listed and refused with the bound, quickly', async () => {
  await using scratch = await scratchRepository();
  const raw = new RawGit(scratch);
  const oid = raw.blob('x');
  const folder = raw.tree(
    Array.from({ length: 100_000 }, (_, number) => ({
      mode: '100644',
      name: `f${String(number).padStart(6, '0')}`,
      oid,
    })),
  );
  raw.draft(
    'huge',
    raw.tree([
      { mode: '100644', name: 'Kptfile', oid: raw.blob(KPTFILE) },
      { mode: '40000', name: 'files', oid: folder },
    ]),
  );
  const { store } = await scratch.open();
  expect(store.get('packages.huge.v1').problem).toBeUndefined();
  const { invalid } = await store.evaluate('packages.huge.v1');
  expect(invalid).toMatchObject({ code: 'Unreadable', message: expect.stringContaining('more than 10000 entries') });
});

test('Kptfiles that would exhaust a parser are problems of their own revision only', async () => {
  await using scratch = await scratchRepository();
  const raw = new RawGit(scratch);
  const bombs: Record<string, string> = {
    aliases: `${KPTFILE}a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n`,
    depth: `${KPTFILE}a: ${'['.repeat(50_000)}${']'.repeat(50_000)}\n`,
    large: `${KPTFILE}# ${'x'.repeat(10_000_000)}\n`,
    binary: '\u0000\u0001\u0002',
  };
  for (const [name, text] of Object.entries(bombs)) {
    raw.draft(name, raw.tree([{ mode: '100644', name: 'Kptfile', oid: raw.blob(text) }]));
  }
  raw.draft('good', raw.tree([{ mode: '100644', name: 'Kptfile', oid: raw.blob(KPTFILE) }]));
  const { store } = await scratch.open();
  for (const name of Object.keys(bombs)) expect(store.get(`packages.${name}.v1`).problem, name).toBeTypeOf('string');
  expect(store.get('packages.good.v1').problem).toBeUndefined();
});
