import { methodNotAllowed } from '../http/request-errors.ts';
import { parseRequestPath } from '../http/request-path.ts';
import type { Filter } from './filter.ts';

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Reads the method and the URL: which verb on which resource, or which path. */
export const parseUrl: Filter = async ({ incoming, found }, next) => {
  const { method = '', url = '' } = incoming;
  if (!METHODS.includes(method)) throw methodNotAllowed(METHODS);
  const { info, query } = parseRequestPath(method, url);
  found.info = info;
  found.query = query;
  return next();
};
