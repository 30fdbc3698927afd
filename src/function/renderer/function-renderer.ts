import { createHash } from 'node:crypto';
import { contentOf, gatesOf, readKptfile } from '../../../kptfile-schema/index.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { canonicalJson } from '../../foundation/text/canonical-json.ts';
import { traced } from '../../foundation/tracing/traced.ts';
import { namesFunctions, RENDERED } from '../../package/plan/edit/render.ts';
import type { Renderer, Rendering, RenderRequest } from '../../package/plan/ports/renderer.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { FunctionRules } from '../model/function-rules.ts';
import type { PipelineInput, PipelineRunner } from '../model/pipeline.ts';
import { readsStatus } from '../pipeline/reads-status.ts';
import { isResourcePath } from '../resource/resource-path.ts';
import { type FoundRendering, renderingOf, withRenderStatus } from './rendering-of.ts';

const MAX_CACHE_BYTES = 64 * 1024 * 1024;
/** Size of a cached rendering in addition to its texts. */
const ENTRY_BYTES = 2048;

export interface FunctionRendererOptions {
  readonly runner: PipelineRunner;
  /** The rules about functions in configuration objects of a namespace. */
  rules(namespace: string): FunctionRules;
  /** The functions that the runner has. */
  readonly catalog: Catalog;
  /** See `PipelineInput`. */
  readonly registry?: string;
  /** Writes `status.renderStatus` into every Kptfile, and not only where it is already. */
  readonly keepsRenderStatus?: boolean;
}

/**
 * Renders packages by their function pipelines. A package that was rendered before with the same functions is answered from a
 * cache, which does not keep failures that may be temporary.
 */
export class FunctionRenderer implements Renderer {
  readonly #options: FunctionRendererOptions;
  readonly #cache = new LruCache<string, FoundRendering>({ maxSize: MAX_CACHE_BYTES });

  constructor(options: FunctionRendererOptions) {
    this.#options = options;
  }

  async render({
    files,
    namespace,
    validatorConditions,
    pinnedValidators = [],
    signal,
  }: RenderRequest): Promise<Rendering | undefined> {
    if (namesFunctions(files) === false) return undefined;
    const { runner, registry } = this.#options;
    const rules = this.#options.rules(namespace);
    const input: PipelineInput = {
      files: textsOf(files),
      rules,
      validatorConditions,
      pinnedValidators,
      ...(registry === undefined ? {} : { registry }),
    };
    const key = this.#keyOf(input);
    const cached = this.#cache.get(key);
    const found = await traced(
      'package.render',
      { 'sluice.namespace': namespace, 'sluice.files': input.files.size, 'sluice.cached': cached !== undefined },
      async () => cached ?? renderingOf(await runner.run(input, signal), input.files.get('Kptfile') ?? ''),
    );
    if (cached === undefined && found.lasting) this.#cache.set(key, found, sizeOf(found));
    const isKept = this.#options.keepsRenderStatus === true;
    return withRenderStatus(found, input.files.get('Kptfile') ?? '', { isKept });
  }

  #keyOf(input: PipelineInput): string {
    const { files, rules, validatorConditions, pinnedValidators } = input;
    const { catalog } = this.#options;
    const hash = createHash('sha256');
    const add = (...texts: string[]) => {
      for (const text of texts) hash.update(`${Buffer.byteLength(text)} `).update(text);
    };
    add(catalog.functionsDigest(rules), canonicalJson([[...validatorConditions].sort(), pinnedValidators]));
    const withStatus = readsStatus(input, catalog);
    for (const path of [...files.keys()].sort()) {
      const text = files.get(path) ?? '';
      add(path, path === 'Kptfile' ? kptfileKey(text, withStatus) : text);
    }
    return hash.digest('base64');
  }
}

function sizeOf({ status, rendering }: FoundRendering): number {
  let bytes = ENTRY_BYTES + JSON.stringify(status).length;
  for (const [path, text] of rendering.edits ?? []) bytes += path.length + (text?.length ?? 0);
  return bytes;
}

/** The files that functions see: YAML that is text. */
function textsOf(files: ReadonlyMap<string, Uint8Array>): Map<string, string> {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const texts = new Map<string, string>();
  for (const [path, data] of files) {
    if (!isResourcePath(path)) continue;
    try {
      texts.set(path, utf8.decode(data));
    } catch {
      // Bytes that are no UTF-8 stay as they are.
    }
  }
  return texts;
}

/** The parts of the package's own Kptfile that functions can see, without what rendering itself writes there. */
function kptfileKey(text: string, withStatus: boolean): string {
  const read = readKptfile(text);
  if (!read.ok) return text;
  const conditions = (read.kptfile.status?.conditions ?? []).filter(({ type }) => type !== RENDERED.type);
  return canonicalJson([contentOf(read.kptfile), gatesOf(read.kptfile), withStatus ? conditions : []]);
}
