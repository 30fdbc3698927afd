import type { FunctionRule, FunctionRules } from '../../function/model/function-rules.ts';
import { mayNameFunctions } from '../../package/plan/edit/render.ts';
import type { Renderer, Rendering, RenderRequest } from '../../package/plan/ports/renderer.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';
import type { FunctionSettings } from './function-settings.ts';

/** The renderer of a session. Functions are read, and their workers started, when the first package names some. */
export class SessionRenderer implements Renderer {
  readonly #policies: ObjectReaders['functionPolicies'];
  readonly #settings: FunctionSettings;
  #opened: Promise<Renderer & { close(): Promise<void> }> | undefined;

  constructor({ functionPolicies }: Pick<ObjectReaders, 'functionPolicies'>, settings: FunctionSettings) {
    this.#policies = functionPolicies;
    this.#settings = settings;
  }

  async render(request: RenderRequest): Promise<Rendering | undefined> {
    if (!mayNameFunctions(request.files)) return undefined;
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    const renderer = await this.#opened;
    // A rule that forbids a function applies from the moment of its acknowledgement.
    await this.#policies.refresh(request.namespace);
    return renderer.render(request);
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }

  async #open(): Promise<Renderer & { close(): Promise<void> }> {
    const [{ FunctionRenderer }, { workerPipelineRunner }, { Catalog }, { builtIns }, { externalRunnerFor }] =
      await Promise.all([
        import('../../function/renderer/function-renderer.ts'),
        import('../../function/worker/worker-pipeline-runner.ts'),
        import('../../function/catalog/catalog.ts'),
        import('../../function/built-in/index.ts'),
        import('./external-runner-for.ts'),
      ]);
    const runner = workerPipelineRunner({ external: externalRunnerFor(this.#settings, process.env) });
    const catalog = new Catalog(builtIns);
    const renderer = new FunctionRenderer({
      runner,
      catalog,
      rules: (namespace) => this.#rules(namespace),
      ...(this.#settings.registry === undefined ? {} : { registry: this.#settings.registry }),
      keepsRenderStatus: this.#settings.renderStatus === true,
    });
    return { render: (request) => renderer.render(request), close: () => runner.close() };
  }

  /** The rules of a namespace, by the names of their objects and in the order of each. */
  #rules(namespace: string): FunctionRules {
    return this.#policies
      .listIn(namespace)
      .flatMap(({ spec }) => spec.rules)
      .map(({ image, tags, builtIn, exec, container, forbid }) => ({
        image,
        ...(tags === undefined ? {} : { tags }),
        action: actionOf({ builtIn, exec, container, forbid }),
      }));
  }
}

function actionOf({
  builtIn,
  exec,
  container,
  forbid,
}: {
  readonly builtIn: string | undefined;
  readonly exec: string | undefined;
  readonly container: { readonly digest?: string | undefined } | undefined;
  readonly forbid: string | undefined;
}): FunctionRule['action'] {
  if (builtIn !== undefined) return { type: 'builtIn', name: builtIn };
  if (exec !== undefined) return { type: 'exec', path: exec };
  if (forbid !== undefined) return { type: 'forbid', message: forbid };
  const digest = container?.digest;
  return { type: 'container', ...(digest === undefined ? {} : { digest }) };
}
