import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Actor } from '../../resource/object/request-context.ts';

/** Carries the reason of a request, percent-encoded; other servers ignore it. */
const REASON_HEADER = 'sluice-reason';
const MAX_REASON_CHARACTERS = 1024;
const MAX_GROUPS = 100;

export type RequestHeaders = Readonly<Record<string, string | readonly string[]>>;

/** Headers that impersonate another user. */
export function impersonationHeaders({ name, groups = [] }: Actor): RequestHeaders {
  if (name === '') throw new SluiceError('InvalidInput', 'cannot impersonate a user without a name');
  if (groups.length > MAX_GROUPS)
    throw new SluiceError(
      'InvalidInput',
      `user "${name}" has ${groups.length} groups, at most ${MAX_GROUPS} can be sent`,
    );
  return {
    'impersonate-user': headerValue(name),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups.map(headerValue) }),
  };
}

export function reasonHeaders(reason: string | undefined): RequestHeaders {
  if (reason === undefined || reason === '') return {};
  return { [REASON_HEADER]: encodeURIComponent(reason.slice(0, MAX_REASON_CHARACTERS).toWellFormed()) };
}

/** Servers written in Go parse header values as UTF-8; HTTP libraries for JavaScript require one character for each byte. */
function headerValue(text: string): string {
  if (/[\0-\x1f\x7f]/.test(text))
    throw new SluiceError('InvalidInput', `${JSON.stringify(text)} is not a valid name of a user or a group`);
  return Buffer.from(text, 'utf8').toString('latin1');
}
