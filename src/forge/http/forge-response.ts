import type { Dispatcher } from 'undici';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface ForgeResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** The body; that of a failure without the token. */
  readonly text: string;
}
