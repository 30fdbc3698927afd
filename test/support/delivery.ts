import { join } from 'node:path';
import { type DeliveryOptions, deliveryController } from '../../controllers/delivery/delivery-controller.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { deliveredOf } from '../../src/delivery/delivered/list-delivered.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { ANNA, type Fixture } from './fixture.ts';
import { git as gitCli } from './git/git-cli.ts';

export const CONTEXT = { signal: new AbortController().signal, failures: 0 };
export type TargetSpec = Parameters<typeof deliveryTargetKind.complete>[0]['spec'];

export function configMap(name: string, value = '1'): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: apps\ndata:\n  value: "${value}"\n`;
}

export function controllerOn(world: Fixture, options: Partial<DeliveryOptions> = {}): ControllerOptions {
  const { client, store, clock, folder } = world;
  const recorder = world.recorder('controller:delivery');
  return deliveryController({
    client,
    store,
    clock,
    recorder,
    dataFolder: join(folder, 'data'),
    window: 0,
    git: { network: DEFAULT_NETWORK },
    ...options,
  });
}

/** A published revision of a package with one ConfigMap. */
export async function publish(
  world: Fixture,
  path: string,
  value = '1',
  more: Record<string, string> = {},
): Promise<string> {
  const { name } = await world.draft(`apps/${path}/w1`, { 'cm.yaml': configMap(path, value), ...more });
  await world.publish(name);
  return name;
}

/** Publishes a revision with a Secret, which targets refuse. */
export async function publishRefused(world: Fixture, source: string): Promise<void> {
  const { key } = world.store.get(source);
  const copy = { type: 'copy', source } as const;
  const { name } = await world.store.create('apps', { package: key.package, workspace: 'w2', source: copy }, ANNA);
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: n\nstringData:\n  key: x\n';
  await world.store.change(name, { files: new Map([['secret.yaml', Buffer.from(secret)]]) }, ANNA);
  await world.publish(name);
}

export async function publishNext(world: Fixture, source: string, workspace: string, value: string): Promise<string> {
  const { key } = world.store.get(source);
  const copy = { type: 'copy', source } as const;
  const { name } = await world.store.create('apps', { package: key.package, workspace, source: copy }, ANNA);
  const files = new Map([['cm.yaml', Buffer.from(configMap(key.package, value))]]);
  await world.store.change(name, { files }, ANNA);
  await world.publish(name);
  return name;
}

export async function remove(world: Fixture, name: string): Promise<void> {
  await world.store.update(name, { action: 'propose-deletion' }, ANNA);
  await world.store.update(name, { action: 'delete' }, ANNA);
}

export async function statusOf(world: Fixture, name = 'edge') {
  const target = await world.client.get(deliveryTargetKind, { name });
  const { status } = target;
  const ready = findCondition(status?.conditions, 'Ready');
  const packages = await deliveredOf(world.client, undefined, target);
  return { status, packages, reason: ready?.reason, message: ready?.message ?? '' };
}

export function filesOf(path: string, branch = 'main'): string[] {
  const files = gitCli(path, ['ls-tree', '-r', '--name-only', branch]).split('\n');
  return files.filter((file) => file !== 'README.md');
}

/** Replaces the commits of `main` by others with the same trees, authors and messages, as a rebase does. The earlier ones are gone. */
export function rebaseMain(path: string): string {
  let parent = gitCli(path, ['commit-tree', gitCli(path, ['mktree']), '-m', 'another beginning']);
  for (const commit of gitCli(path, ['rev-list', '--reverse', 'main']).split('\n')) {
    const [tree = '', ...lines] = gitCli(path, ['cat-file', 'commit', commit]).split('\n');
    const others = lines.filter((line) => !line.startsWith('parent '));
    const text = [tree, `parent ${parent}`, ...others, ''].join('\n');
    parent = gitCli(path, ['hash-object', '-t', 'commit', '-w', '--stdin'], text);
  }
  return replaceMain(path, parent);
}

/** Replaces the commits of `main` by one with the same tree. The earlier ones are gone. */
export function squashMain(path: string): string {
  return replaceMain(path, gitCli(path, ['commit-tree', 'main^{tree}', '-m', 'squashed']));
}

function replaceMain(path: string, commit: string): string {
  gitCli(path, ['update-ref', 'refs/heads/main', commit]);
  gitCli(path, ['reflog', 'expire', '--expire=now', '--all']);
  gitCli(path, ['gc', '--quiet', '--prune=now']);
  return commit;
}
