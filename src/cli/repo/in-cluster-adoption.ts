import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterObjects } from '../../app/cluster/cluster-objects.ts';
import { dataFolder } from '../../app/data/data-folder.ts';
import { Session, type SessionOptions } from '../../app/session/session.ts';
import { keySourceOf } from '../../app/trust/open-trust.ts';
import { type SigningChoice, signingKeyOf } from '../../app/trust/signing-choice.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock, timestamp } from '../../foundation/time/clock.ts';
import { canonicalAddressNow } from '../../git/open/repository-address.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { findClusterAccess } from '../../kubernetes/access/kubeconfig.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import type { KeySource } from '../../package/trust/keys/own-key.ts';
import { statementSigner } from '../../package/trust/statement/statement-signer.ts';
import { verifySignature } from '../../package/trust/statement/verify-signature.ts';
import { openClusterLedger } from '../access/cluster-ledger.ts';
import type { Place } from '../access/place.ts';
import type { AdoptionPlace } from './adoption-place.ts';

export interface ClusterAdoptionOptions extends Pick<SessionOptions, 'actor' | 'network' | 'onNote'> {
  readonly place: Extract<Place, { kind: 'server' }>;
  /** Of the objects of the installation. */
  readonly ledgerNamespace: string;
  /** A key of the operator; default: one that only this adoption uses. */
  readonly choice: SigningChoice;
  readonly environment: NodeJS.ProcessEnv;
  /** False to keep the ledger as it is. */
  readonly write: boolean;
}

const COMMENT = 'sluice repo adopt';

/**
 * Runs an adoption for an installation in a cluster, in a temporary mirror and with the marks of the cluster's ledger.
 *
 * It never signs with the key of the installation, although its Secret could be read: the leader would find statements of its own key that
 * its ledger does not have yet, and conclude that the ledger is old. A key of its own has the same effect, once the ledger trusts it.
 */
export async function inClusterAdoption<Result>(
  options: ClusterAdoptionOptions,
  run: (place: AdoptionPlace) => Promise<Result>,
): Promise<Result> {
  const { place, ledgerNamespace: namespace, choice, environment, write, actor, network, onNote } = options;
  const { kubeconfig, context } = place;
  const clock = systemClock;
  const connection = new Connection(await findClusterAccess({ kubeconfig, context, environment, clock }));
  const path = await mkdtemp(join(tmpdir(), 'sluice-adopt-'));
  try {
    const client = new HttpClient({ connection, face: 'cli' });
    const ledger = await openClusterLedger({ client, server: connection.access.server, namespace, write });
    const source = sourceOf(choice);
    const signer = statementSigner(source.read());
    const { fingerprint, publicKey } = signer;
    if (ledger.keys().some((key) => key.fingerprint === fingerprint && key.origin === 'own'))
      throw new SluiceError(
        'InvalidInput',
        `cannot adopt with ${source.name}: it is a key of the installation itself, whose ledger would count as old; name another key with --signing-key, or none`,
      );
    const end = new AbortController();
    let refusal: unknown;
    const onError = (error: unknown) => {
      if (!isSluiceError(error, 'Refused') && !isSluiceError(error, 'Unauthenticated')) return;
      refusal ??= error;
      end.abort();
    };
    const session = await Session.openOn(
      {
        ...{ actor, clock, onError, signal: end.signal, folder: dataFolder(path) },
        ...(onNote === undefined ? {} : { onNote }),
        // As in the cluster: an address on this machine is another one there.
        ...(network === undefined ? {} : { network: { ...network, isRemoteOnly: true } }),
      },
      {
        objects: new ClusterObjects({ client, clock, startVersion: 0n, onEvent: () => undefined }),
        openTrust: async () => ({ signer: () => signer, verify: verifySignature, ledger }),
      },
    ).catch((error: unknown) => {
      // Without a right, the readers would try for ever.
      throw refusal ?? error;
    });
    try {
      const result = await run({
        ...{ session, namespace: connection.access.namespace, isCluster: true },
        expectKnown: (address) => {
          if (ledger.repositoryAt(canonicalAddressNow(address)) !== undefined) return;
          throw new SluiceError(
            'Unavailable',
            'the Sluice of the cluster has not read the repository yet, so that it has no id; wait until the Repository is Ready',
          );
        },
        beforeWrite: async () => {
          const addedAt = timestamp(clock.now());
          ledger.addKey({ fingerprint, publicKey, comment: source.comment, origin: 'added', addedAt });
          await ledger.flushed();
        },
      });
      if (write) await ledger.flushed();
      return result;
    } finally {
      await session.close();
    }
  } finally {
    await connection.close();
    await rm(path, { recursive: true, force: true });
  }
}

/** Its private part is in memory alone, so that nothing else can ever be signed with it. */
function sourceOf(choice: SigningChoice): KeySource {
  if (choice.secret !== undefined)
    throw new SluiceError(
      'InvalidInput',
      'an adoption for a cluster does not sign with a Secret of it; name a key in a file with --signing-key, or none',
    );
  const key = choice.file === undefined ? undefined : signingKeyOf(choice, () => undefined);
  if (key !== undefined) return { ...keySourceOf('', key), comment: COMMENT };
  const text = generateSshKey(COMMENT);
  return { name: 'the key of this adoption', read: () => text, volatile: false, comment: COMMENT };
}
