import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Manager } from '../../controller/manager.ts';
import { customResourceDefinitionKind } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from '../session/session.ts';
import { addHousekeepers } from './housekeepers.ts';

/** Runs housekeepers on a data folder, until they have nothing to do; `act` runs before the controllers. */
async function keepHouse(path: string, act: (session: Session) => Promise<void>, disabled: readonly string[] = []) {
  const session = await Session.open({ folder: dataFolder(path), actor: { name: 'anna' }, write: true });
  const { client, clock } = session;
  const manager = new Manager({ client, clock });
  try {
    addHousekeepers(manager, session, disabled);
    // Before any controller works.
    manager.add({ name: 'act', start: () => act(session) });
    await manager.start();
    await manager.idle();
    return { waiting: manager.waiting().map(({ controller }) => controller) };
  } finally {
    await manager.stop(0);
    await session.close();
  }
}

function gatewayKind({ registry }: Session): Kind {
  const kind = registry.find('example.org', 'v1', 'gateways')?.kind;
  expect(kind).toBeDefined();
  return kind as Kind;
}

test('kinds of users and their objects outlive the process, and are there from the beginning', async () => {
  const path = await mkdtemp(join(tmpdir(), 'sluice-house-'));
  try {
    await keepHouse(path, async ({ client }) => {
      const openAPIV3Schema = {
        type: 'object',
        properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
      };
      await client.create(customResourceDefinitionKind, {
        metadata: { name: 'gateways.example.org' },
        spec: {
          group: 'example.org',
          names: { plural: 'gateways', kind: 'Gateway' },
          scope: 'Namespaced',
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
        },
      });
    });
    await keepHouse(path, async (session) => {
      await session.client.create(gatewayKind(session), { metadata: { name: 'a' }, spec: { size: 3 } });
    });
    await keepHouse(path, async (session) => {
      const { items } = await session.client.list(gatewayKind(session));
      expect(items).toMatchObject([{ apiVersion: 'example.org/v1', metadata: { name: 'a' }, spec: { size: 3 } }]);
    });
  } finally {
    await rm(path, { recursive: true });
  }
});

test('what a package of a repository that is not open owns is left alone', async () => {
  const path = await mkdtemp(join(tmpdir(), 'sluice-house-'));
  try {
    const owner = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', name: 'r.p.v1', uid: 'u' };
    const { waiting } = await keepHouse(path, async ({ client }) => {
      await client.create(configMapKind, { metadata: { name: 'm', ownerReferences: [owner] } });
    });
    expect(waiting).toContain('garbage-collection');
    await keepHouse(path, async ({ client }) => {
      expect(await client.find(configMapKind, { name: 'm' })).toBeDefined();
    });
  } finally {
    await rm(path, { recursive: true });
  }
});

test('each can be switched off', async () => {
  const path = await mkdtemp(join(tmpdir(), 'sluice-house-'));
  try {
    await keepHouse(path, async () => undefined, ['namespace']);
    await keepHouse(path, async ({ client }) => {
      expect(await client.find(namespaceKind, { name: 'default' })).toBeUndefined();
    });
    await keepHouse(path, async ({ client }) => {
      expect(await client.find(namespaceKind, { name: 'default' })).toBeDefined();
    });
  } finally {
    await rm(path, { recursive: true });
  }
});
