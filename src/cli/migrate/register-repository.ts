import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { type Secret, secretKind } from '../../resource/kinds/core/secret.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { expectReady } from '../access/repository-status.ts';
import { portableObject } from '../transfer/portable-object.ts';
import type { RepositoryReport } from './migration-report.ts';

type SecretReport = NonNullable<RepositoryReport['secret']>;

/**
 * Finds out whether Sluice has the Secret of a repository. `source` is the API from which a missing one may be copied; undefined if it may
 * not. Undefined for a repository without credentials.
 */
export async function planSecret(
  object: Repository,
  sluice: Access | undefined,
  source: Access | undefined,
): Promise<SecretReport | undefined> {
  const key = secretKeyOf(object);
  if (key === undefined) return undefined;
  const { name } = key;
  if (sluice !== undefined && (await sluice.client.find(secretKind, key)) !== undefined)
    return { name, state: 'present' };
  const isCopied = source !== undefined && (await source.client.find(secretKind, key)) !== undefined;
  return { name, state: isCopied ? 'copy' : 'missing' };
}

/** Creates the namespace and the Secret that a repository needs, then the object, and waits until Sluice has read it. */
export async function registerRepository(
  object: Repository,
  sluice: Access,
  { source, waitMs }: { readonly source: Access | undefined; readonly waitMs: number },
): Promise<void> {
  const { client } = sluice;
  const { name, namespace = DEFAULT_NAMESPACE } = object.metadata;
  if ((await client.find(namespaceKind, { name: namespace })) === undefined)
    await unlessThere(client.create(namespaceKind, { metadata: { name: namespace }, spec: {} }));
  // Before the object: it is opened at once.
  if (source !== undefined) await copySecret(object, source, sluice);
  const made = await client.create(repositoryKind, object);
  try {
    await expectReady({ ...apiOf(sluice), namespace }, made, waitMs);
  } catch (error) {
    if (!isSluiceError(error) || error.code === 'Internal') throw error;
    // It stays registered: the next run compares it, and nothing has to be done again.
    throw new SluiceError(error.code, `it is registered, but cannot be used yet: ${error.message}`, {
      cause: error,
      details: { next: `sluice repo get ${name} -n ${namespace}, then run the command again` },
    });
  }
}

const apiOf = ({ client, clock, server }: Access) => ({ client, clock, server });

async function copySecret(object: Repository, source: Access, { client }: Access): Promise<void> {
  const key = secretKeyOf(object);
  if (key === undefined || (await client.find(secretKind, key)) !== undefined) return;
  const given: Stored<Secret> | undefined = await source.client.find(secretKind, key);
  if (given === undefined) throw new SluiceError('NotFound', `the Secret ${keyText(key)} is missing at Porch`);
  const { metadata, ...content } = portableObject(secretKind, given).object as Secret;
  const { ownerReferences: _owners, finalizers: _finalizers, ...portable } = metadata;
  await unlessThere(client.create(secretKind, { ...content, metadata: portable }));
}

function secretKeyOf({ metadata, spec }: Repository): ObjectKey | undefined {
  const name = spec.git?.secretRef?.name ?? '';
  return name === '' ? undefined : { namespace: metadata.namespace ?? DEFAULT_NAMESPACE, name };
}

/** Another client may create the same object at the same time. */
async function unlessThere(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!isSluiceError(error, 'AlreadyExists')) throw error;
  });
}
