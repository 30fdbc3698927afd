import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Milliseconds that a signed time may differ from ours, either way. */
export const REPLAY_WINDOW = 5 * 60_000;

/**
 * Each of them is the HMAC-SHA256 of the body in hexadecimal digits. The older digest `X-Hub-Signature` is not accepted.
 */
const BODY_SIGNATURES: Readonly<Record<string, string>> = {
  'x-hub-signature-256': 'sha256=',
  'x-gitea-signature': '',
  'x-forgejo-signature': '',
  'x-gogs-signature': '',
};
/** A sender that renews its secret signs with the old one too. */
const MAX_SIGNATURES = 4;
/** Prefix of a signing key of GitLab. */
const ENCODED_KEY = 'whsec_';

/** One way in which a sender shows that it knows the secret. */
interface Proof {
  update(chunk: Uint8Array): void;
  isValid(): boolean;
}

/**
 * Checks whether the sender of a message knows one of the secrets, while the body streams through, without buffering it. Every
 * proof in the headers must be valid, and at least one is required:
 * - `X-Hub-Signature-256` (GitHub), `X-Gitea-Signature`, `X-Forgejo-Signature`, `X-Gogs-Signature`: HMAC-SHA256 of the body;
 * - `X-Gitlab-Token`: the secret itself;
 * - `webhook-signature` (GitLab and others, by standardwebhooks.com): HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` in
 *   base64, with the key that follows `whsec_`, or the secret as it is;
 * - `X-Sluice-Signature`: `sha256=` and the HMAC-SHA256 of `<X-Sluice-Timestamp>.<body>` in hexadecimal digits.
 *
 * `now` is in milliseconds since the epoch; times in headers are whole seconds.
 */
export class SignatureCheck {
  readonly #proofs: readonly Proof[];

  constructor(headers: IncomingHttpHeaders, secrets: readonly string[], now: number) {
    const header = (name: string) => {
      const value = headers[name];
      return typeof value === 'string' ? value : undefined;
    };
    this.#proofs = [
      bodyProof(header, secrets),
      tokenProof(header('x-gitlab-token'), secrets),
      standardProof(header, secrets, now),
      sluiceProof(header, secrets, now),
    ].filter((proof) => proof !== undefined);
  }

  /** To be called with each part of the body, in order. */
  update(chunk: Uint8Array): void {
    for (const proof of this.#proofs) proof.update(chunk);
  }

  /** Must be called once, after the whole body. Its duration reveals nothing about a wrong proof. */
  isValid(): boolean {
    const results = this.#proofs.map((proof) => proof.isValid());
    return results.length > 0 && !results.includes(false);
  }
}

type Header = (name: string) => string | undefined;

function bodyProof(header: Header, secrets: readonly string[]): Proof | undefined {
  const claimed = Object.entries(BODY_SIGNATURES).flatMap(([name, prefix]) => {
    const text = header(name);
    if (text === undefined) return [];
    return [text.startsWith(prefix) ? text.slice(prefix.length) : ''];
  });
  if (claimed.length === 0) return undefined;
  return signedBy(secrets, '', 'hex', (digest) => !claimed.map((text) => sameText(text, digest)).includes(false));
}

function tokenProof(token: string | undefined, secrets: readonly string[]): Proof | undefined {
  if (token === undefined) return undefined;
  // Each byte of a header is read as one character; what is compared is what was sent.
  const sent = Buffer.from(token, 'latin1').toString('utf8');
  return {
    update: () => undefined,
    isValid: () => secrets.map((secret) => sameText(secret, sent)).includes(true),
  };
}

function standardProof(header: Header, secrets: readonly string[], now: number): Proof | undefined {
  const signatures = header('webhook-signature');
  if (signatures === undefined) return undefined;
  const [id, time] = [header('webhook-id') ?? '', header('webhook-timestamp') ?? ''];
  const claimed = signatures.split(' ', MAX_SIGNATURES).map((text) => (text.startsWith('v1,') ? text.slice(3) : ''));
  const keys = secrets.map(keyOf);
  const isFresh = isNear(time, now) && id !== '';
  return signedBy(
    keys,
    `${id}.${time}.`,
    'base64',
    (digest) => claimed.map((text) => sameText(text, digest)).includes(true) && isFresh,
  );
}

/** Every sender knows an empty key. */
function keyOf(secret: string): string | Buffer {
  const key = secret.startsWith(ENCODED_KEY) ? Buffer.from(secret.slice(ENCODED_KEY.length), 'base64') : secret;
  return key.length === 0 ? secret : key;
}

function sluiceProof(header: Header, secrets: readonly string[], now: number): Proof | undefined {
  const signature = header('x-sluice-signature');
  if (signature === undefined) return undefined;
  const time = header('x-sluice-timestamp') ?? '';
  const isFresh = isNear(time, now);
  return signedBy(secrets, `${time}.`, 'hex', (digest) => sameText(signature, `sha256=${digest}`) && isFresh);
}

/** A proof by HMAC-SHA256 over a prefix and the body, under any of the keys. */
function signedBy(
  keys: readonly (string | Buffer)[],
  prefix: string,
  encoding: 'hex' | 'base64',
  fits: (digest: string) => boolean,
): Proof {
  const hashes = keys.map((key) => createHmac('sha256', key).update(prefix));
  return {
    update: (chunk) => {
      for (const hash of hashes) hash.update(chunk);
    },
    isValid: () => hashes.map((hash) => fits(hash.digest(encoding))).includes(true),
  };
}

function isNear(seconds: string, now: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) * 1000 - now) <= REPLAY_WINDOW;
}

/** Texts of any length, compared by their digests: neither their lengths nor where they differ shows in the time. */
function sameText(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other));
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
