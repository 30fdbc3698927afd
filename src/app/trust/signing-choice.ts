import { isAbsolute, resolve } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type Secret, secretText } from '../../resource/kinds/core/secret.ts';
import type { DeepReadonly } from '../../resource/object/object.ts';
import type { SigningKey } from './open-trust.ts';

/** The key that signs in place of the one in the data folder. */
export interface SigningChoice {
  /** Absolute path. */
  readonly file?: string;
  readonly secret?: { readonly namespace: string; readonly name: string };
}

/** Reads `--signing-key` and `--signing-key-secret`, which are passed in the environment. Throws InvalidInput. */
export function signingChoice(environment: NodeJS.ProcessEnv): SigningChoice {
  const file = environment.SLUICE_SIGNING_KEY || undefined;
  const secret = environment.SLUICE_SIGNING_KEY_SECRET || undefined;
  if (file !== undefined && secret !== undefined)
    throw new SluiceError('InvalidInput', 'name one key only: --signing-key or --signing-key-secret');
  if (file !== undefined) return { file: isAbsolute(file) ? file : resolve(file) };
  if (secret === undefined) return {};
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(secret) ?? [];
  if (namespace === undefined || name === undefined)
    throw new SluiceError(
      'InvalidInput',
      `--signing-key-secret ${JSON.stringify(secret)} must be <namespace>/<name> of a Secret`,
    );
  return { secret: { namespace, name } };
}

/** Returns the chosen key; undefined for that of the data folder. `readSecret` returns the current Secret of the choice. */
export function signingKeyOf(
  { file, secret }: SigningChoice,
  readSecret: () => DeepReadonly<Secret> | undefined,
): SigningKey | undefined {
  if (file !== undefined) return { file };
  if (secret === undefined) return undefined;
  const place = `${secret.namespace}/${secret.name}`;
  return {
    secret: place,
    read() {
      const found = readSecret();
      if (found === undefined)
        throw new SluiceError(
          'NotFound',
          `cannot sign statements: there is no Secret ${place}; create it with the key identity`,
        );
      const text = secretText(found, 'identity') ?? secretText(found, 'ssh-privatekey');
      if (text !== undefined) return text;
      throw new SluiceError(
        'InvalidInput',
        `cannot sign statements: Secret ${place} has neither of the keys identity and ssh-privatekey`,
      );
    },
  };
}
