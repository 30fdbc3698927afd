import { isSluiceError } from '../../foundation/sluice-error.ts';
import { parseSshPublicKey, type SshPublicKey } from './ssh-public-key.ts';

/** More keys than servers that share a repository. */
const MAX_KEYS = 100;
/** A key of each server takes 100 bytes, the largest ones 3 KB. */
const MAX_TEXT_CHARACTERS = 256 * 1024;

export interface PublicKeyList {
  readonly keys: readonly (SshPublicKey & { readonly comment: string })[];
  /** Errors of single lines, each with its number from 1: `line 2: …`. The other lines count. */
  readonly problems: readonly string[];
}

/** Reads public keys in the form of OpenSSH, one per line. Skips empty lines and lines that start with `#`. */
export function parsePublicKeyList(text: string): PublicKeyList {
  if (text.length > MAX_TEXT_CHARACTERS) return { keys: [], problems: ['it is too long: it may have 256 KiB'] };
  if (/^-----BEGIN [A-Z ]*PRIVATE KEY-----/m.test(text))
    return { keys: [], problems: ['it is a private key, which must not be shared; name its public key (.pub)'] };
  const keys: (SshPublicKey & { readonly comment: string })[] = [];
  const problems: string[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (keys.length + problems.length >= MAX_KEYS) {
      problems.push(`line ${index + 1}: there are more than ${MAX_KEYS} keys`);
      break;
    }
    try {
      keys.push(parseSshPublicKey(line));
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
      problems.push(`line ${index + 1}: ${error.message}`);
    }
  }
  if (keys.length === 0 && problems.length === 0) problems.push('it lists no key');
  return { keys, problems };
}
