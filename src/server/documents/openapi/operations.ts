import { apiVersionOf, type GroupVersionKind } from '../../../resource/object/object.ts';
import type { ServedResource, ServedVersion } from '../discovery/served.ts';
import { PARAMETERS, type QueryParameter, textParameter } from './parameters.ts';
import { listKind, metaSchemaName, schemaName } from './schema-names.ts';

export type Method = 'get' | 'put' | 'post' | 'patch' | 'delete';

/** An operation at a path, independent of the version of OpenAPI. */
export interface Operation {
  readonly method: Method;
  /** Name of the action in Kubernetes. */
  readonly action: keyof typeof PARAMETERS;
  /** Unique in all documents. */
  readonly id: string;
  readonly description: string;
  readonly kind: GroupVersionKind;
  readonly query: readonly QueryParameter[];
  readonly body?: { readonly schema: string; readonly contentTypes: readonly string[]; readonly required: boolean };
  readonly produces: readonly string[];
  /** Name of the schema of each successful response, by status. */
  readonly answers: Readonly<Record<string, string>>;
}

export interface OperationsAtPath {
  readonly path: string;
  /** The variable parts of the path. */
  readonly variables: readonly ('namespace' | 'name')[];
  readonly operations: readonly Operation[];
}

const PRODUCES = ['application/json', 'application/yaml'];
const STREAMED = [...PRODUCES, 'application/json;stream=watch'];
const ANY = ['*/*'];
const STATUS = metaSchemaName('Status');

/** Everything that can be done with the resources of a group and version. */
export function operationsOf(served: ServedVersion): OperationsAtPath[] {
  return served.resources.flatMap((resource) => pathsOf(served, resource)).filter((path) => path.operations.length > 0);
}

function pathsOf(served: ServedVersion, resource: ServedResource): OperationsAtPath[] {
  const base = `/${served.group === '' ? 'api' : 'apis'}/${apiVersionOf(served)}`;
  const { namespaced, plural, verbs } = resource;
  const scope = namespaced ? ['namespace' as const] : [];
  const collection = `${base}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`;
  const make = operationMaker(served, resource);
  const ofMany = (['list', 'post', 'deletecollection'] as const).filter((action) => verbs.includes(VERB[action]));
  const ofOne = (['get', 'put', 'patch', 'delete'] as const).filter((action) => verbs.includes(VERB[action]));
  const everywhere = namespaced && verbs.includes('list');
  return [
    ...(everywhere
      ? [{ path: `${base}/${plural}`, variables: [], operations: [make('list', { everywhere: true })] }]
      : []),
    { path: collection, variables: scope, operations: ofMany.map((action) => make(action)) },
    {
      path: `${collection}/{name}`,
      variables: ['name', ...scope],
      operations: ofOne.map((action) => make(action)),
    },
    ...resource.subResources.map((sub): OperationsAtPath => {
      const actions = (['get', 'put', 'post', 'patch'] as const).filter((action) => sub.verbs.includes(VERB[action]));
      return {
        path: `${collection}/{name}/${sub.name}`,
        variables: ['name', ...scope],
        operations: actions.map((action) => make(action, { sub })),
      };
    }),
  ];
}

type Action = Operation['action'];

const VERB: Readonly<Record<Action, string>> = {
  list: 'list',
  get: 'get',
  post: 'create',
  put: 'update',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'deletecollection',
};

const METHOD: Readonly<Record<Action, Method>> = {
  list: 'get',
  get: 'get',
  post: 'post',
  put: 'put',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
};

const WORDS: Readonly<Record<Action, readonly [string, string]>> = {
  list: ['list', 'list or watch objects of kind'],
  get: ['read', 'read'],
  post: ['create', 'create'],
  put: ['replace', 'replace'],
  patch: ['patch', 'change a part of'],
  delete: ['delete', 'delete'],
  deletecollection: ['deleteCollection', 'delete all objects of kind'],
};

interface Place {
  readonly sub?: ServedResource['subResources'][number];
  /** In all namespaces at once. */
  readonly everywhere?: boolean;
}

function operationMaker(served: ServedVersion, resource: ServedResource) {
  const version = pascalCase(`${served.group === '' ? 'core' : served.group}.${served.version}`);
  return (action: Action, { sub, everywhere = false }: Place = {}): Operation => {
    const { group, version: ownVersion, kind } = sub?.kind ?? resource;
    const [word, phrase] = WORDS[action];
    const scope = resource.namespaced && !everywhere ? 'Namespaced' : '';
    const behind = `${sub === undefined ? '' : pascalCase(sub.name)}${everywhere ? 'ForAllNamespaces' : ''}`;
    const body = bodyOf(action, { group, version: ownVersion, kind }, resource);
    return {
      method: METHOD[action],
      action,
      id: `${word}${version}${scope}${resource.kind}${behind}`,
      description: `${phrase} ${resource.kind}${sub === undefined ? '' : `, sub-resource ${sub.name}`}`,
      kind: { group, version: ownVersion, kind },
      query: [...PARAMETERS[action], ...(sub?.parameters ?? []).map(textParameter)],
      ...(body === undefined ? {} : { body }),
      produces: action === 'list' ? STREAMED : PRODUCES,
      answers: answersOf(action, { group, version: ownVersion, kind }),
    };
  };
}

function bodyOf(action: Action, kind: GroupVersionKind, resource: ServedResource): Operation['body'] {
  if (action === 'post' || action === 'put') return { schema: schemaName(kind), contentTypes: ANY, required: true };
  if (action === 'patch') return { schema: metaSchemaName('Patch'), contentTypes: resource.patchTypes, required: true };
  if (action === 'delete' || action === 'deletecollection')
    return { schema: metaSchemaName('DeleteOptions'), contentTypes: ANY, required: false };
  return undefined;
}

function answersOf(action: Action, kind: GroupVersionKind): Record<string, string> {
  const schema = schemaName(kind);
  if (action === 'list') return { 200: schemaName(listKind(kind)) };
  if (action === 'get') return { 200: schema };
  if (action === 'delete') return { 200: STATUS, 202: STATUS };
  if (action === 'deletecollection') return { 200: STATUS };
  return { 200: schema, 201: schema };
}

function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}
