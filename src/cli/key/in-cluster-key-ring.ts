import { SIGNING_KEY_NAME } from '../../app/cluster/ensure-signing-key.ts';
import { keySourceOf } from '../../app/trust/open-trust.ts';
import { type SigningChoice, signingKeyOf } from '../../app/trust/signing-choice.ts';
import { isSluiceError, messageOf, type SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { findClusterAccess } from '../../kubernetes/access/kubeconfig.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import { enterOwnKey } from '../../package/trust/keys/own-key.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Secret, secretKind, secretText } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { openClusterLedger } from '../access/cluster-ledger.ts';
import type { Place } from '../access/place.ts';
import type { Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { type KeyRing, keyOf, providedKey } from './key-ring.ts';

export interface ClusterKeyRingOptions {
  readonly place: Extract<Place, { kind: 'server' }>;
  /** Of the objects of the installation. */
  readonly namespace: string;
  /** The key that the operator provides; default: the Secret that Sluice creates. */
  readonly choice: SigningChoice;
  /** False for a command that only reads. */
  readonly write: boolean;
}

/**
 * Opens the keys of an installation in a cluster: the ConfigMaps of its trust ledger, and the Secret of its signing key. What the command
 * changes is in the cluster when the promise resolves; replicas watch the ledger.
 */
export async function inClusterKeyRing<Result>(
  { place, namespace, choice, write }: ClusterKeyRingOptions,
  { environment, terminal }: Invocation,
  run: (ring: KeyRing) => Promise<Result> | Result,
): Promise<Result> {
  const { kubeconfig, context } = place;
  const connection = new Connection(await findClusterAccess({ kubeconfig, context, environment, clock: systemClock }));
  try {
    const client = new HttpClient({ connection, face: 'cli' });
    const ledger = await openClusterLedger({ client, server: connection.access.server, namespace, write });
    try {
      const place = choice.secret ?? { namespace, name: SIGNING_KEY_NAME };
      const found = choice.file === undefined ? await findSecret(client, place) : undefined;
      let secret = found?.secret;
      const key = signingKeyOf(choice.file === undefined ? { secret: place } : choice, () => {
        if (found?.refusal !== undefined) throw found.refusal;
        return secret;
      });
      const source = keySourceOf('', key);
      const enter = (text: string) => keyOf(ledger, enterOwnKey(text, source, ledger, systemClock).fingerprint);
      const result = await run({
        ...{ ledger, source },
        repositories: await repositoriesOf(client, (text) =>
          terminal.note(`${terminal.style('yellow', 'warning:', terminal.err)} ${printable(text)}`),
        ),
        own: () => enter(source.read()),
        rotate: async () => {
          if (choice.file !== undefined || choice.secret !== undefined) throw providedKey(source);
          if (found?.refusal !== undefined) throw found.refusal;
          const text = generateSshKey(`sluice@${namespace}`);
          const own = enter(text);
          // The ledger first: all replicas trust the key before one signs with it.
          await ledger.flushed();
          secret = await putKey(client, place, text, secret);
          return own;
        },
      });
      if (write) await ledger.flushed();
      return result;
    } finally {
      ledger.close();
    }
  } finally {
    await connection.close();
  }
}

/** The Secret of the signing key, or why it cannot be read: keys can be trusted and revoked without it. */
async function findSecret(
  client: Client,
  key: { readonly namespace: string; readonly name: string },
): Promise<{ readonly secret?: Stored<Secret> | undefined; readonly refusal?: SluiceError }> {
  try {
    return { secret: await client.find(secretKind, key) };
  } catch (error) {
    if (isSluiceError(error, 'Refused')) return { refusal: error };
    throw error;
  }
}

/** Writes the private key where the Secret has it now. A lost race is a Conflict. */
function putKey(
  client: Client,
  key: { readonly namespace: string; readonly name: string },
  text: string,
  secret: Stored<Secret> | undefined,
): Promise<Stored<Secret>> {
  const encoded = Buffer.from(text).toString('base64');
  if (secret === undefined)
    return client.create(secretKind, { metadata: key, type: 'Opaque', data: { identity: encoded } });
  const isOther = secretText(secret, 'identity') === undefined && secretText(secret, 'ssh-privatekey') !== undefined;
  const data = { [isOther ? 'ssh-privatekey' : 'identity']: encoded };
  return client.patch(secretKind, key, { metadata: { resourceVersion: secret.metadata.resourceVersion }, data });
}

/** Only for warnings: a caller who may not list Repositories gets one about that. */
async function repositoriesOf(client: Client, warn: (text: string) => void): Promise<KeyRing['repositories']> {
  try {
    return (await client.list(repositoryKind)).items;
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    warn(`Repositories that list the keys that they trust are not known: ${messageOf(error)}`);
    return [];
  }
}
