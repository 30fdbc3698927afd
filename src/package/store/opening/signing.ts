import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { trimEndOf } from '../../../foundation/text/trim-characters.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { ObjectSigner } from '../../../git/git-repository.ts';
import { openPgpSigner } from '../../../git/signing/openpgp-signer.ts';
import { sshSigner } from '../../../git/signing/ssh-signer.ts';
import type { Client } from '../../../resource/client/client.ts';
import { SIGNING_ANNOTATION } from '../../../resource/kinds/common/git-location.ts';
import { type Secret, secretKind, secretText } from '../../../resource/kinds/core/secret.ts';
import { DEFAULT_NAMESPACE, type DeepReadonly, type KubernetesObject } from '../../../resource/object/object.ts';

/** Milliseconds for which a key that could sign is taken for one that can. */
const KEY_CHECK_VALID_MS = 60_000;

interface Key {
  readonly version: string;
  readonly signer: Promise<ObjectSigner>;
  /** Time of the last trial, and its error. */
  trial?: { readonly at: number; readonly problem: string | undefined };
}

type Owner = DeepReadonly<KubernetesObject>;

/**
 * Signers with keys from Secrets. A Secret is read for every signature, so that a new key is used at once; its key is parsed once
 * for each version, since decrypting a key takes time. A Secret contains `git.asc`, an armored OpenPGP private key, and its
 * `passphrase` if it has one; or `identity` or `ssh-privatekey`, an SSH key without a passphrase.
 */
export class Signers {
  readonly #client: Client;
  readonly #clock: Clock;
  /** By namespace and name of their Secrets. */
  readonly #keys = new Map<string, Key>();

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** The signer for an object; undefined if it requires no signatures. The signer throws Unavailable if it cannot sign. */
  of(owner: Owner): ObjectSigner | undefined {
    if (signingSecret(owner) === undefined) return undefined;
    return async (payload) => {
      try {
        return await (await this.#key(owner)).signer.then((sign) => sign(payload));
      } catch (error) {
        throw new SluiceError('Unavailable', `cannot write: ${this.#complaint(owner, error)}`, { cause: error });
      }
    };
  }

  /** Returns why signing is impossible for an object; undefined if it is possible, or not required. */
  async problem(owner: Owner): Promise<string | undefined> {
    if (signingSecret(owner) === undefined) return undefined;
    try {
      const key = await this.#key(owner);
      const now = this.#clock.monotonic();
      if (key.trial === undefined || now - key.trial.at >= KEY_CHECK_VALID_MS) {
        key.trial = { at: now, problem: await this.#trial(key) };
      }
      return key.trial.problem === undefined ? undefined : this.#complaint(owner, key.trial.problem);
    } catch (error) {
      return this.#complaint(owner, error);
    }
  }

  async #trial({ signer }: Key): Promise<string | undefined> {
    try {
      await (await signer)(Buffer.from('trial'));
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  async #key(owner: Owner): Promise<Key> {
    const { namespace = DEFAULT_NAMESPACE } = owner.metadata;
    const name = signingSecret(owner) ?? '';
    const place = `${namespace}/${name}`;
    const secret = name === '' ? undefined : await this.#client.find(secretKind, { namespace, name });
    if (secret === undefined) {
      this.#keys.delete(place);
      throw new SluiceError('NotFound', 'it does not exist; create it with git.asc, or identity');
    }
    const version = `${secret.metadata.uid} ${secret.metadata.resourceVersion}`;
    const known = this.#keys.get(place);
    if (known?.version === version) return known;
    const signer = signerOf(secret, this.#clock);
    signer.catch(() => {
      // Thrown to the caller that wants to sign.
    });
    const key = { version, signer };
    this.#keys.set(place, key);
    return key;
  }

  #complaint(owner: Owner, error: unknown): string {
    const { namespace = DEFAULT_NAMESPACE, name } = owner.metadata;
    const secret = `Secret ${namespace}/${signingSecret(owner)}`;
    const why = typeof error === 'string' ? error : messageOf(error);
    return `commits of ${owner.kind} ${namespace}/${name} are signed with the key in ${secret}: ${why}`;
  }
}

/** The name of the Secret; undefined if no signatures are required. */
export function signingSecret({ metadata }: Owner): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, SIGNING_ANNOTATION)
    ? annotations[SIGNING_ANNOTATION]
    : undefined;
}

async function signerOf(secret: Secret, clock: Clock): Promise<ObjectSigner> {
  const openPgp = secretText(secret, 'git.asc');
  const given = secretText(secret, 'passphrase');
  const passphrase = given === undefined ? undefined : trimEndOf(given, '\r\n');
  if (openPgp !== undefined) return openPgpSigner(openPgp, passphrase, clock);
  const ssh = secretText(secret, 'identity') ?? secretText(secret, 'ssh-privatekey');
  if (ssh !== undefined) return sshSigner(ssh);
  throw new SluiceError('InvalidInput', 'it has none of the keys git.asc, identity and ssh-privatekey');
}
