import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/clock.ts';
import { configMapKind } from '../../resource/kinds/config-map.ts';
import { type CliFixture, cliFixture } from '../testing.ts';
import { createDataFolder, dataFolder, exists } from './data-folder.ts';
import { ObjectSet } from './object-set.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(() => cli[Symbol.asyncDispose]());

test('an import that was interrupted before a deletion was asked for again goes on with it', async () => {
  const folder = dataFolder(cli.data);
  await createDataFolder(folder);
  const first = await ObjectSet.open({ folder, clock: systemClock, write: true });
  const metadata = { name: 'held', namespace: 'default', finalizers: ['example.org/keep'] };
  const [storage] = first.storages().filter(({ kind }) => kind.kind === 'ConfigMap');
  await storage?.create({ actor: { name: 'sluice' }, face: 'cli' }, configMapKind.complete({ metadata }));
  await first.close();
  await mkdir(folder.oldObjects);
  const old = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  };
  await writeFile(join(folder.oldObjects, 'held.yaml'), JSON.stringify(old));
  const second = await ObjectSet.open({ folder, clock: systemClock, write: true });
  const [held] = second.of(configMapKind);
  expect(held?.metadata.deletionTimestamp).toBeDefined();
  expect(await exists(folder.oldObjects)).toBe(false);
  await second.close();
});
