import type { Registry } from '../resource/storage/registry.ts';
import { ALL_VERBS } from '../resource/storage/storage.ts';
import type { ServedKind } from './documents/discovery/served.ts';
import type { DocumentCache } from './documents/document-cache.ts';
import { acceptsGzip } from './http/answer.ts';
import type { PathHandler } from './request/path-handler.ts';
import { READ_ONLY_VERBS, SUBRESOURCE_VERBS } from './request/served-resources.ts';

/** Serves the paths of discovery, OpenAPI and the version. A client that names the ETag of the document gets 304. */
export function documentPaths(documents: Pick<DocumentCache, 'find'>): PathHandler {
  return async ({ path, query, request }) => {
    const document = documents.find(path, request.headers.accept);
    if (document === undefined) return undefined;
    const { contentType, etag, hash } = document;
    const headers = {
      ...{ ETag: etag, Vary: 'Accept, Accept-Encoding' },
      // A document at an address with its hash never changes.
      ...(query.get('hash') === hash ? { 'Cache-Control': 'public, immutable, max-age=31536000' } : {}),
    };
    if (request.headers['if-none-match'] === etag) return { status: 304, contentType, body: '', headers };
    if (!acceptsGzip(request)) return { status: 200, contentType, body: document.body, headers };
    return {
      status: 200,
      contentType,
      body: await document.gzip(),
      headers: { ...headers, 'Content-Encoding': 'gzip' },
    };
  };
}

/** The kinds of a registry as discovery lists them. */
export function servedKinds(registry: Registry): ServedKind[] {
  return registry.kinds().map((kind) => {
    const { verbs = ALL_VERBS, subResources, readOnlySubResources = [] } = registry.storage(kind);
    const written = subResources.map((name) => ({ name, verbs: SUBRESOURCE_VERBS, kind }));
    const readOnly = readOnlySubResources.map((one) => ({ ...one, verbs: READ_ONLY_VERBS }));
    return { kind, verbs, subResources: [...written, ...readOnly] };
  });
}
