import { z } from 'zod';
import { clusterRules } from '../../schema/cluster-rule.ts';

const HTTP_URL = 'must be an http:// or https:// URL without a user name or password';

/** An address that Sluice posts to; whether its host may be used decides the operator. */
export const httpUrlSchema = z
  .string()
  .max(2048)
  .refine(isHttpUrl, HTTP_URL)
  .meta(clusterRules([String.raw`self.matches(r'^https?://[^\s@/?#\\]+([/?#][^\s]*)?$')`, HTTP_URL]));

const API_URL = 'must be an http:// or https:// URL without a user name, a password, a query or a fragment';

/** The base of addresses that are requested: what follows a `?` or `#` would be lost, or a secret that every reader of the object sees. */
export const apiUrlSchema = z
  .string()
  .max(2048)
  .refine((text) => isHttpUrl(text) && !/[?#]/.test(text), API_URL)
  .meta(clusterRules([String.raw`self.matches(r'^https?://[^\s@/?#\\]+(/[^\s?#]*)?$')`, API_URL]));

function isHttpUrl(text: string): boolean {
  const url = /[\s\u0000-\u001f\u007f\\]/.test(text) ? null : URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}
