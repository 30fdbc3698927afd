import { SluiceError } from '../../foundation/sluice-error.ts';
import { DNS_LABEL, followsRule } from '../../resource/object/name-rules.ts';
import { fieldSelector } from '../../resource/selector/field-selector.ts';
import type { RequestAttributes } from '../authorization/authorizer.ts';
import { requestSelectors } from './request-selectors.ts';

/** The attributes of a request, derived from its method and its URL only. */
export type RequestInfo = Omit<RequestAttributes, 'user'>;

const MAX_PATH_LENGTH = 4096;
const MAX_NAME_LENGTH = 253;
/** Sub-resources of a namespace; every other word in their place is a resource inside the namespace. */
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);
const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const SELECTING_VERBS: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection']);
const OF_MANY: Readonly<Record<string, string>> = { get: 'list', delete: 'deletecollection' };

/**
 * Reads `/api/v1/…` and `/apis/<group>/<version>/…` by the grammar of the Kubernetes API; every other path is a
 * non-resource path. BadRequest for paths that only hostile clients send: empty or dotted segments, encoded slashes,
 * control characters. NotFound for paths that are longer than the grammar.
 */
export function parseRequestPath(method: string, url: string): { info: RequestInfo; query: URLSearchParams } {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const segments = segmentsOf(path);
  const place = placeOf(segments);
  if (place === undefined) {
    const nothing = { group: '', version: '', resource: '', subResource: '', namespace: '', name: '' };
    return { info: { verb: method.toLowerCase(), isResource: false, path, ...nothing }, query };
  }
  const single = VERBS[method] ?? method.toLowerCase();
  const verb = place.name === '' ? verbOfMany(single, query) : single;
  const name = place.name === '' && verb !== 'create' ? nameFromSelector(query) : place.name;
  const selectors = SELECTING_VERBS.has(verb) ? requestSelectors(query) : undefined;
  const info = { verb, isResource: true, path, ...place, name };
  return { info: selectors === undefined ? info : { ...info, selectors }, query };
}

/** True if a switch such as `watch` is on: `?watch`, `?watch=true`, `?watch=1`. */
export function isOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)?.toLowerCase();
  return value !== undefined && value !== 'false' && value !== '0';
}

function segmentsOf(path: string): string[] {
  if (!path.startsWith('/')) throw badPath('must begin with "/"');
  if (path.length > MAX_PATH_LENGTH) throw badPath(`has more than ${MAX_PATH_LENGTH} characters`);
  const raw = path.slice(1).split('/');
  // `/apis/` means `/apis`.
  if (raw.at(-1) === '') raw.pop();
  return raw.map(decodeSegment);
}

function decodeSegment(raw: string): string {
  let text: string;
  try {
    text = decodeURIComponent(raw);
  } catch {
    throw badPath('is not encoded properly');
  }
  if (text === '') throw badPath('has an empty segment');
  if (text === '.' || text === '..') throw badPath('must not contain "." or ".." as a segment');
  if (/[/%\\\u0000-\u001f\u007f]/.test(text)) throw badPath('has a segment with a slash, "%" or a control character');
  if (text.length > MAX_NAME_LENGTH) throw badPath(`has a segment of more than ${MAX_NAME_LENGTH} characters`);
  return text;
}

type Place = Pick<RequestInfo, 'group' | 'version' | 'resource' | 'subResource' | 'namespace' | 'name'>;

/** The place of a path in the resource grammar; undefined for other paths, such as discovery. */
function placeOf(segments: readonly string[]): Place | undefined {
  const [prefix] = segments;
  if (prefix !== 'api' && prefix !== 'apis') return undefined;
  const grouped = prefix === 'apis';
  const [group, version] = grouped ? [segments[1], segments[2]] : ['', segments[1]];
  const rest = segments.slice(grouped ? 3 : 2);
  const [first] = rest;
  if (group === undefined || version === undefined || first === undefined) return undefined;
  if (first === 'watch' && rest.length > 1)
    throw new SluiceError('BadRequest', 'the path prefix "watch" is not served; use the parameter watch=true');
  return { group, version, ...objectPlace(rest) };
}

function objectPlace(rest: readonly string[]): Omit<Place, 'group' | 'version'> {
  const [first = '', namespace = '', third] = rest;
  if (first !== 'namespaces') return namedPlace('', rest);
  if (namespace !== '' && !followsRule(namespace, DNS_LABEL))
    throw badPath(`names the namespace ${JSON.stringify(namespace)}, which ${DNS_LABEL.rule}`);
  // A namespace itself is in the namespace of its name.
  if (third === undefined || (NAMESPACE_SUBRESOURCES.has(third) && rest.length === 3))
    return { resource: first, namespace, name: namespace, subResource: third ?? '' };
  return namedPlace(namespace, rest.slice(2));
}

function namedPlace(namespace: string, rest: readonly string[]): Omit<Place, 'group' | 'version'> {
  const [resource = '', name = '', subResource = ''] = rest;
  if (rest.length > 3) throw new SluiceError('NotFound', 'the server could not find the requested resource');
  return { resource, namespace, name, subResource };
}

function verbOfMany(verb: string, query: URLSearchParams): string {
  return verb === 'get' && isOn(query, 'watch') ? 'watch' : (OF_MANY[verb] ?? verb);
}

/** The right to list one object by its name may be granted by that name. */
function nameFromSelector(query: URLSearchParams): string {
  const text = query.get('fieldSelector');
  if (text === null) return '';
  try {
    const found = fieldSelector(text).requirements.find(
      ({ path, operator }) => path === 'metadata.name' && operator === '=',
    );
    return found !== undefined && found.value.length <= MAX_NAME_LENGTH ? found.value : '';
  } catch {
    // The handler parses the selector again and reports what is wrong with it.
    return '';
  }
}

function badPath(problem: string): SluiceError {
  return new SluiceError('BadRequest', `the path ${problem}`);
}
