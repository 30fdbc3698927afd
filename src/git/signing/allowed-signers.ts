import { SluiceError } from '../../foundation/sluice-error.ts';
import { parseSshPublicKey, type SshPublicKey } from './ssh-public-key.ts';

const MAX_TEXT_CHARACTERS = 4 * 1024 * 1024;
const MAX_PATTERN_CHARACTERS = 4096;
/** A field: text without blanks, unless they are quoted. */
const FIELD = /^(?:[^\s"]|"(?:[^"\\]|\\.)*")+/;
const OPTION = /^([A-Za-z-]+)(?:="((?:[^"\\]|\\.)*)")?(?:,|$)/;
const TIME = /^(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?(Z?)$/;

/** A line of an allowed-signers file (ssh-keygen(1), ALLOWED SIGNERS). */
export interface AllowedSigner {
  readonly principals: string;
  readonly publicKey: SshPublicKey;
  /** Patterns of the namespaces for which the key may sign; undefined for all. */
  readonly namespaces: string | undefined;
  /** Milliseconds since the epoch. */
  readonly validAfter: number | undefined;
  readonly validBefore: number | undefined;
  /** From 1. */
  readonly line: number;
}

/**
 * Reads an allowed-signers file. Throws InvalidInput with the number of the line for what OpenSSH would skip with a message, and for
 * `cert-authority`: certificates are not supported, and skipping such a line would silently distrust keys.
 */
export function parseAllowedSigners(text: string): AllowedSigner[] {
  if (text.length > MAX_TEXT_CHARACTERS)
    throw new SluiceError('InvalidInput', 'the allowed-signers file is too long: it may have 4 MiB');
  const signers: AllowedSigner[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const content = raw.trim();
    if (content === '' || content.startsWith('#')) continue;
    try {
      signers.push({ ...parseLine(content), line: index + 1 });
    } catch (error) {
      const reason = error instanceof SluiceError ? error.message : String(error);
      throw new SluiceError('InvalidInput', `line ${index + 1} of the allowed-signers file: ${reason}`);
    }
  }
  return signers;
}

/** True if the line permits its key to sign for a namespace at a time, in milliseconds since the epoch. */
export function allowsSigning(
  { namespaces, validAfter, validBefore }: AllowedSigner,
  namespace: string,
  at: number,
): boolean {
  if (validAfter !== undefined && at < validAfter) return false;
  if (validBefore !== undefined && at > validBefore) return false;
  return namespaces === undefined || matchesPatterns(namespaces, namespace);
}

function parseLine(content: string): Omit<AllowedSigner, 'line'> {
  const [principals, rest] = takeField(content);
  const [second, afterSecond] = takeField(rest);
  const hasOptions = !/^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+$/.test(second);
  const options = hasOptions ? parseOptions(second) : NO_OPTIONS;
  return {
    principals: unquoted(principals),
    ...options,
    publicKey: parseSshPublicKey(hasOptions ? afterSecond : rest),
  };
}

function takeField(text: string): [field: string, rest: string] {
  const field = FIELD.exec(text)?.[0];
  if (field === undefined || field.length > MAX_PATTERN_CHARACTERS) throw refused('it has no principals, or no key');
  return [field, text.slice(field.length).trimStart()];
}

const NO_OPTIONS = { namespaces: undefined, validAfter: undefined, validBefore: undefined };

function parseOptions(text: string): Pick<AllowedSigner, 'namespaces' | 'validAfter' | 'validBefore'> {
  let options: Pick<AllowedSigner, 'namespaces' | 'validAfter' | 'validBefore'> = NO_OPTIONS;
  for (let rest = text; rest !== ''; ) {
    const [whole, name = '', value] = OPTION.exec(rest) ?? [];
    if (whole === undefined) throw refused('it has neither options nor a type of key after the principals');
    rest = rest.slice(whole.length);
    const field = OPTION_FIELDS.get(name.toLowerCase());
    if (name.toLowerCase() === 'cert-authority')
      throw refused('cert-authority is not supported; list the keys that sign themselves');
    if (field === undefined) throw refused(`the option ${name} is unknown`);
    if (value === undefined) throw refused(`the option ${name} needs a value in quotes`);
    if (options[field] !== undefined) throw refused(`the option ${name} occurs twice`);
    options = { ...options, [field]: field === 'namespaces' ? value.replace(/\\(.)/g, '$1') : timeOf(value) };
  }
  const { validAfter, validBefore } = options;
  if (validAfter !== undefined && validBefore !== undefined && validBefore <= validAfter)
    throw refused('valid-before is not after valid-after');
  return options;
}

const OPTION_FIELDS: ReadonlyMap<string, 'namespaces' | 'validAfter' | 'validBefore'> = new Map([
  ['namespaces', 'namespaces'],
  ['valid-after', 'validAfter'],
  ['valid-before', 'validBefore'],
]);

/** `YYYYMMDD[Z]` or `YYYYMMDDHHMM[SS][Z]`; without `Z` in the time zone of the machine, as OpenSSH reads it. */
function timeOf(text: string): number {
  const [, ...parts] = TIME.exec(text) ?? [];
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(0, 6)
    .map((part) => Number(part ?? 0));
  const time = parts[6] === 'Z' ? Date.UTC(year, month - 1, day, hour, minute, second) : undefined;
  const date = time === undefined ? new Date(year, month - 1, day, hour, minute, second) : new Date(time);
  const same = time === undefined ? date.getMonth() === month - 1 : date.getUTCMonth() === month - 1;
  if (parts.length === 0 || !same || hour > 23 || minute > 59 || second > 59)
    throw refused(`"${text.slice(0, 40)}" is no time of the form 20260131 or 202601311200Z`);
  return date.getTime();
}

function unquoted(field: string): string {
  return field.replace(/"((?:[^"\\]|\\.)*)"/g, (_, inner: string) => inner.replace(/\\(.)/g, '$1'));
}

/** As match_pattern_list of OpenSSH: at least one pattern matches, and none of those with `!` does. */
function matchesPatterns(patterns: string, text: string): boolean {
  let found = false;
  for (const pattern of patterns.split(',')) {
    const negated = pattern.startsWith('!');
    if (!matchesPattern(negated ? pattern.slice(1) : pattern, text)) continue;
    if (negated) return false;
    found = true;
  }
  return found;
}

/** Matches `*` and `?` as in a shell. Takes linear time for each `*`, since it backtracks only to the last one. */
function matchesPattern(pattern: string, text: string): boolean {
  let [at, star, resume] = [0, -1, 0];
  for (let position = 0; position < text.length; ) {
    if (pattern[at] === '*') {
      star = at;
      resume = position;
      at += 1;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[position])) {
      at += 1;
      position += 1;
    } else if (star >= 0) {
      resume += 1;
      position = resume;
      at = star + 1;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}

function refused(reason: string): SluiceError {
  return new SluiceError('InvalidInput', reason);
}
