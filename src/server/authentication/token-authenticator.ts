import { stat } from 'node:fs/promises';
import { isMissing } from '../../foundation/files/file-system.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { readPrivateFile } from '../certificates/private-file.ts';
import type { AuthenticationRequest, Authenticator } from './authenticator.ts';
import { hashOfToken, MAX_TOKEN_FILE_BYTES, parseTokenFile, type TokenEntry } from './token-file.ts';
import type { User } from './user.ts';

export interface TokenAuthenticatorOptions {
  /** See `token-file.ts`. It need not exist yet. */
  readonly path: string;
  readonly clock: Clock;
  /** Called once for each change of the file with each line that is ignored; and with the failure to read the file. */
  readonly onProblem: (problem: string) => void;
}

/** Milliseconds for which a removed token may still be accepted. */
const CHECK_INTERVAL_MS = 1000;
/** Far above any token of ours; longer ones are not hashed. */
const MAX_TOKEN_LENGTH = 4096;

/**
 * Authenticates users by the bearer tokens of a token file. The file is read again when it changes. Tokens are looked up by their
 * hash, so that the duration of a look-up reveals nothing about a token. While the file exists and cannot be read, the last content
 * applies; a missing file contains no tokens.
 */
export class TokenAuthenticator implements Authenticator {
  readonly #options: TokenAuthenticatorOptions;
  #entries: ReadonlyMap<string, TokenEntry> = new Map();
  #version: string | undefined;
  #failure: string | undefined;
  #checked = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | undefined;

  constructor(options: TokenAuthenticatorOptions) {
    this.#options = options;
  }

  authenticate({ headers }: AuthenticationRequest): User | undefined | Promise<User | undefined> {
    const token = bearerToken(headers.authorization);
    return token === undefined ? undefined : this.userOf(token);
  }

  /** The user of a token; undefined if it is unknown or expired. */
  userOf(token: string): User | undefined | Promise<User | undefined> {
    if (token === '' || token.length > MAX_TOKEN_LENGTH) return undefined;
    const age = this.#options.clock.monotonic() - this.#checked;
    const isFresh = age < CHECK_INTERVAL_MS && this.#checking === undefined;
    // A new token is used at once, so the file is checked for an unknown one; all requests that wait share the check.
    if (isFresh && this.#entries.has(hashOfToken(token))) return this.#find(token);
    return this.#checkAndFind(token);
  }

  async #checkAndFind(token: string): Promise<User | undefined> {
    const isShared = this.#checking !== undefined;
    await this.#check();
    // A check that another request began may be older than the token.
    if (isShared && !this.#entries.has(hashOfToken(token))) await this.#check();
    return this.#find(token);
  }

  #find(token: string): User | undefined {
    const entry = this.#entries.get(hashOfToken(token));
    if (entry === undefined) return undefined;
    return entry.expires === undefined || this.#options.clock.now() < entry.expires ? entry.user : undefined;
  }

  #check(): Promise<void> {
    this.#checking ??= this.#reload().finally(() => {
      this.#checking = undefined;
      this.#checked = this.#options.clock.monotonic();
    });
    return this.#checking;
  }

  async #reload(): Promise<void> {
    const { path, onProblem } = this.#options;
    try {
      const version = await versionOf(path);
      if (version === this.#version) return;
      const text = await readPrivateFile(path, MAX_TOKEN_FILE_BYTES);
      const entries = parseTokenFile(path, text ?? '', onProblem);
      this.#entries = new Map(entries.map((entry) => [entry.hash, entry]));
      this.#version = version;
      this.#failure = undefined;
    } catch (error) {
      const failure = `${error instanceof SluiceError ? '' : `cannot read ${path}: `}${messageOf(error)}`;
      // Reading is tried again every second, and reported once.
      if (failure !== this.#failure) onProblem(failure);
      this.#failure = failure;
    }
  }
}

/** The token of an `Authorization: Bearer` header; undefined if there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^Bearer ([A-Za-z0-9\-._~+/]+=*)$/i.exec(header)?.[1];
}

/** Changes with every replacement or change of the file; `absent` if there is none. */
async function versionOf(path: string): Promise<string> {
  try {
    const { mtimeNs, size, ino } = await stat(path, { bigint: true });
    return `${mtimeNs} ${size} ${ino}`;
  } catch (error) {
    if (isMissing(error)) return 'absent';
    throw error;
  }
}
