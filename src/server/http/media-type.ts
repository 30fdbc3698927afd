import { SluiceError } from '../../foundation/sluice-error.ts';

export interface MediaType {
  /** `application/json`, in lower case. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** The form of objects that a client requests. */
export interface Representation {
  readonly encoding: 'json' | 'yaml';
  readonly as: 'object' | 'table' | 'partial';
}

const MAX_ACCEPT_CLAUSES = 32;
const FORMS: ReadonlyMap<string, Representation['as']> = new Map([
  ['Table', 'table'],
  ['PartialObjectMetadata', 'partial'],
  ['PartialObjectMetadataList', 'partial'],
]);
const ENCODINGS: ReadonlyMap<string, Representation['encoding']> = new Map([
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

/** Reads a Content-Type, or one clause of an Accept header. */
export function parseMediaType(text: string): MediaType {
  const [type = '', ...rest] = text.split(';');
  const parameters = new Map<string, string>();
  for (const part of rest) {
    const [name = '', value = ''] = part.split('=', 2);
    parameters.set(name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, '$1'));
  }
  return { type: type.trim().toLowerCase(), parameters };
}

/** The clauses of an Accept header, the most preferred first. Without a header every type is accepted. */
export function acceptedTypes(accept: string | undefined): MediaType[] {
  const clauses = (accept?.trim() || '*/*').split(',', MAX_ACCEPT_CLAUSES).map(parseMediaType);
  return clauses.filter((clause) => qualityOf(clause) > 0).sort((a, b) => qualityOf(b) - qualityOf(a));
}

/** The first form in an Accept header that objects can be shown in. NotAcceptable if there is none. */
export function negotiate(accept: string | undefined): Representation {
  for (const { type, parameters } of acceptedTypes(accept)) {
    const encoding = ENCODINGS.get(type);
    const form = parameters.get('as');
    if (encoding === undefined) continue;
    if (form === undefined) return { encoding, as: 'object' };
    const as = FORMS.get(form);
    const isMeta = parameters.get('g') === 'meta.k8s.io' && parameters.get('v') === 'v1';
    if (as !== undefined && isMeta) return { encoding, as };
  }
  throw new SluiceError(
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml, ' +
      'application/json;as=Table;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  );
}

function qualityOf({ parameters }: MediaType): number {
  const quality = Number(parameters.get('q') ?? 1);
  return Number.isFinite(quality) ? quality : 1;
}
