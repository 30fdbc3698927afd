import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';

const require = createRequire(import.meta.url);
const FILE = require.resolve('@octokit/openapi/generated/api.github.com.json');
const ROOT = 'https://openapi.test/';
const JSON_TYPE = 'application/json';

interface Operation {
  readonly description?: string;
  readonly parameters?: readonly Value[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Value }>> };
  readonly responses: Readonly<Record<string, Value>>;
}

type Value = { readonly [key: string]: unknown };

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly examples: Readonly<Record<string, { readonly value: unknown }>> };
}

/** By name of the event and action. */
type Webhooks = Readonly<Record<string, { readonly post: Operation }>>;

/** GitHub's published description of its REST API and its webhooks. */
export class OpenApi {
  readonly #document: Document;
  readonly #examples: Document['components']['examples'];
  readonly #webhooks: Webhooks;
  readonly #ajv: Ajv;
  readonly #compiled = new Map<string, ValidateFunction>();

  constructor() {
    const description = JSON.parse(readFileSync(FILE, 'utf8')) as Document & {
      readonly components: Value;
      readonly 'x-webhooks': Webhooks;
    };
    const { paths, components } = description;
    const { examples, ...parts } = components;
    this.#document = { ...(withoutNullable({ paths, components: parts }) as Document) };
    this.#webhooks = description['x-webhooks'];
    this.#examples = examples;
    this.#ajv = new Ajv({ strict: false, logger: false, validateSchema: false, code: { optimize: false } });
    formats.default(this.#ajv);
    this.#ajv.addSchema({ $id: ROOT, ...this.#document }, 'openapi');
  }

  /** A copy of a published example. */
  example(name: string): unknown {
    const example = this.#examples[name];
    if (example === undefined) throw new Error(`no example ${name}`);
    return structuredClone(example.value);
  }

  /** The text about an operation. `path` is a template. */
  descriptionOf(method: string, path: string): string {
    return this.#operation(method, path).description ?? '';
  }

  /** What is wrong with a request, if anything: unknown parameters and fields too, which GitHub would ignore. `path` is a template. */
  requestProblems(method: string, path: string, query: URLSearchParams, body: unknown): string[] {
    const operation = this.#operation(method, path);
    const parameters = (operation.parameters ?? [])
      .map((one) => this.#resolve(one))
      .filter((one) => one.in === 'query');
    const problems: string[] = [];
    for (const [name, text] of query) {
      const parameter = parameters.find((one) => one.name === name);
      if (parameter === undefined) problems.push(`unknown parameter ${name}`);
      else {
        const schema = parameter.schema as Value;
        const value = schema.type === 'integer' ? Number(text) : text;
        problems.push(...this.#problems(`${method} ${path} ${name}`, schema, value));
      }
    }
    const schema = operation.requestBody?.content[JSON_TYPE]?.schema;
    if (schema === undefined) return body === undefined ? problems : [...problems, 'it takes no body'];
    if (body === undefined) return problems;
    // `oneOf` at the top: the properties are in its parts.
    const known = Object.keys((schema.properties as object | undefined) ?? (body as object));
    const unknown = Object.keys(body as object).filter((key) => !known.includes(key));
    problems.push(...unknown.map((key) => `unknown field ${key}`));
    const at = `paths/${token(path)}/${method.toLowerCase()}/requestBody/content/${token(JSON_TYPE)}/schema`;
    return [...problems, ...this.#problems(`${method} ${path} body`, { $ref: `${ROOT}#/${at}` }, body)];
  }

  /** What is wrong with a response, if anything. One with a status that is not described, as of all failures of servers, may be anything. */
  responseProblems(method: string, path: string, status: number, body: unknown): string[] {
    const described = this.#operation(method, path).responses[String(status)];
    if (described === undefined) return status < 400 ? [`status ${status} is not described`] : [];
    const reference = typeof described.$ref === 'string' ? described.$ref : undefined;
    const { content } = this.#resolve(described) as { content?: Value };
    if (content?.[JSON_TYPE] === undefined) return [];
    const own = `#/paths/${token(path)}/${method.toLowerCase()}/responses/${status}`;
    const at = `${ROOT}${reference ?? own}/content/${token(JSON_TYPE)}/schema`;
    return this.#problems(`${method} ${path} ${status}`, { $ref: at }, body);
  }

  /** What is wrong with the payload of a webhook, if anything. */
  webhookProblems(event: string, payload: { readonly action?: string }): string[] {
    const name = [event, ...(payload.action === undefined ? [] : [payload.action])].join('-').replaceAll('_', '-');
    const schema = this.#webhooks[name]?.post.requestBody?.content[JSON_TYPE]?.schema;
    if (schema === undefined) return [`GitHub has no webhook ${name}`];
    return this.#problems(`webhook ${name}`, { $ref: `${ROOT}${String(schema.$ref)}` }, payload);
  }

  #operation(method: string, path: string): Operation {
    const operation = this.#document.paths[path]?.[method.toLowerCase()];
    if (operation === undefined) throw new Error(`GitHub has no ${method} ${path}`);
    return operation;
  }

  #problems(id: string, schema: Value, value: unknown): string[] {
    const validate = this.#compiled.get(id) ?? this.#ajv.compile({ components: {}, ...schema });
    this.#compiled.set(id, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  }

  #resolve(value: Value): Value {
    if (typeof value.$ref !== 'string') return value;
    const found = value.$ref
      .split('/')
      .slice(1)
      .reduce<unknown>((part, key) => (part as Value)[key], this.#document);
    return found as Value;
  }
}

/** A part of a JSON pointer in a URL. */
function token(text: string): string {
  return encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** OpenAPI 3.0 has `nullable` also where there is no `type`, which JSON Schema does not know. */
function withoutNullable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullable);
  if (typeof value !== 'object' || value === null) return value;
  const { nullable, ...rest } = Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, withoutNullable(part)]),
  );
  if (nullable === undefined || typeof nullable === 'object')
    return nullable === undefined ? rest : { nullable, ...rest };
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest;
}
