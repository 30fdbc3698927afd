import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { openBench } from './open-bench.ts';
import { context, newPackage } from './publish-one-by-one.ts';
import { git } from './synthetic-repository.ts';

/**
 * Draft to Published of many packages at once in a copy of a repository; then `git fast-import` of the same commits, files and refs
 * into another. Milliseconds for all. The copies are made at `<copies>-ours` and `<copies>-imported`.
 */
export async function publishAtOnce(
  path: string,
  copies: string,
  count: number,
): Promise<{ readonly elapsed: number; readonly floor: number }> {
  const [ours, imported] = [`${copies}-ours`, `${copies}-imported`];
  fs.cpSync(path, ours, { recursive: true });
  fs.cpSync(path, imported, { recursive: true });
  const store = new RevisionStore();
  const repository = await openBench(ours, undefined, undefined, (changes) => store.announce(changes));
  await store.add(repository);
  const before = new Map((await repository.git.listRefs()).map(({ name, oid }) => [name, oid]));
  const publish = async (name: string, number: number) => {
    const wanted = { package: name, workspace: 'v1', source: { type: 'init', files: newPackage(number) } } as const;
    const draft = await store.create('bench', wanted, context);
    await store.update(draft.name, { action: 'propose' }, context);
    await store.update(draft.name, { action: 'approve' }, context);
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: count }, (_, number) => publish(`new-${number}`, number)));
  const elapsed = performance.now() - started;
  const changed = (await repository.git.listRefs()).filter(({ name, oid }) => before.get(name) !== oid);
  await store.close();
  const main = before.get('refs/heads/main') ?? '';
  const stream = await git([
    ...['-C', ours, 'fast-export', '--reference-excluded-parents'],
    ...changed.map(({ name }) => name),
    `^${main}`,
  ]);
  return { elapsed, floor: await fastImport(imported, stream) };
}

async function fastImport(path: string, stream: Buffer): Promise<number> {
  const started = performance.now();
  const child = spawn('git', ['-C', path, 'fast-import', '--quiet', '--force'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.end(stream);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
  return performance.now() - started;
}
