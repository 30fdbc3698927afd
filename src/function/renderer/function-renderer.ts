import { createHash } from 'node:crypto';
import { contentOf, gatesOf, readKptfile } from '../../../kptfile-schema/index.ts';
import { canonicalJson } from '../../foundation/canonical-json.ts';
import { namesFunctions, RENDERED } from '../../package/plan/render.ts';
import type { Renderer, Rendering, RenderRequest } from '../../package/plan/renderer.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { FunctionRules } from '../model/function-rules.ts';
import type { PipelineInput, PipelineRunner } from '../model/pipeline.ts';
import { readsStatus } from '../pipeline/reads-status.ts';
import { isResourcePath } from '../resource/resource-path.ts';
import { type FoundRendering, renderingOf, withRenderStatus } from './rendering-of.ts';

/** Bytes of texts that are kept of packages that were rendered before. */
const CACHE_BYTES = 64 * 1024 * 1024;
/** What a cached answer takes besides its texts. */
const ENTRY_BYTES = 2048;

export interface FunctionRendererOptions {
  readonly runner: PipelineRunner;
  /** What configuration objects of a namespace say about functions. */
  rules(namespace: string): FunctionRules;
  /** The functions that the runner has. */
  readonly catalog: Catalog;
  /** Writes `status.renderStatus` into every Kptfile, and not only where it is already. */
  readonly keepsRenderStatus?: boolean;
}

/**
 * Renders packages by their function pipelines. What was rendered before, with the same functions, is answered from memory; failures
 * that may go by themselves are not kept.
 */
export class FunctionRenderer implements Renderer {
  readonly #options: FunctionRendererOptions;
  readonly #known = new Map<string, { readonly found: FoundRendering; readonly bytes: number }>();
  #bytes = 0;

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
    const { runner } = this.#options;
    const rules = this.#options.rules(namespace);
    const input: PipelineInput = { files: textsOf(files), rules, validatorConditions, pinnedValidators };
    const key = this.#keyOf(input);
    let found = this.#recall(key);
    if (found === undefined) {
      found = renderingOf(await runner.run(input, signal), input.files.get('Kptfile') ?? '');
      if (found.lasting) this.#keep(key, found);
    }
    const isKept = this.#options.keepsRenderStatus === true;
    return withRenderStatus(found, input.files.get('Kptfile') ?? '', { isKept });
  }

  #keyOf({ files, rules, validatorConditions, pinnedValidators }: PipelineInput): string {
    const { catalog } = this.#options;
    const hash = createHash('sha256');
    const add = (...texts: string[]) => {
      for (const text of texts) hash.update(`${Buffer.byteLength(text)} `).update(text);
    };
    add(catalog.functionsDigest(rules), canonicalJson([[...validatorConditions].sort(), pinnedValidators]));
    const withStatus = readsStatus(files, catalog, rules);
    for (const path of [...files.keys()].sort()) {
      const text = files.get(path) ?? '';
      add(path, path === 'Kptfile' ? kptfileKey(text, withStatus) : text);
    }
    return hash.digest('base64');
  }

  #recall(key: string): FoundRendering | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    // Those that were asked for last go last.
    this.#known.delete(key);
    this.#known.set(key, known);
    return known.found;
  }

  #keep(key: string, found: FoundRendering): void {
    // Rendered twice at the same time.
    if (this.#known.has(key)) return;
    let bytes = ENTRY_BYTES + JSON.stringify(found.status).length;
    for (const [path, text] of found.rendering.edits ?? []) bytes += path.length + (text?.length ?? 0);
    this.#known.set(key, { found, bytes });
    this.#bytes += bytes;
    for (const [old, { bytes: freed }] of this.#known) {
      if (this.#bytes <= CACHE_BYTES) break;
      this.#known.delete(old);
      this.#bytes -= freed;
    }
  }
}

/** The files that functions see. One that is no text is none of their business. */
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

/** What functions can see of the package's own Kptfile; what rendering itself writes there makes no difference. */
function kptfileKey(text: string, withStatus: boolean): string {
  const read = readKptfile(text);
  if (!read.ok) return text;
  const conditions = (read.kptfile.status?.conditions ?? []).filter(({ type }) => type !== RENDERED.type);
  return canonicalJson([contentOf(read.kptfile), gatesOf(read.kptfile), withStatus ? conditions : []]);
}
