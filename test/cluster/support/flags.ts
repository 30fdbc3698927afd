import { join } from 'node:path';
import { type Credentials, FRONT_PROXY_NAME } from './credentials.ts';

interface Ports {
  readonly apiServer: number;
  readonly etcd: number;
  readonly etcdPeer: number;
}

export function etcdFlags(folder: string, ports: Ports): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // The data does not outlive the machine.
    '--unsafe-no-fsync',
  ];
}

export function apiServerFlags(folder: string, ports: Ports, credentials: Credentials): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${ports.apiServer}`,
    `--cert-dir=${join(folder, 'apiserver')}`,
    // EndpointSlices reject addresses of loopback.
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=127.96.0.0/16',
    '--authorization-mode=RBAC',
    `--client-ca-file=${credentials.caFile}`,
    `--tls-cert-file=${credentials.serverCertificateFile}`,
    `--tls-private-key-file=${credentials.serverKeyFile}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${credentials.serviceAccountPublicFile}`,
    `--service-account-signing-key-file=${credentials.serviceAccountKeyFile}`,
    // Aggregation: how the server proves to an extension server on whose behalf a request is.
    `--requestheader-client-ca-file=${credentials.frontProxyCaFile}`,
    `--requestheader-allowed-names=${FRONT_PROXY_NAME}`,
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${credentials.frontProxyCertificateFile}`,
    `--proxy-client-key-file=${credentials.frontProxyKeyFile}`,
  ];
}

export function controllerManagerFlags(kubeconfig: string, credentials: Credentials): string[] {
  const omitted = [
    'nodeipam',
    'cloud-node-lifecycle',
    'attachdetach',
    'persistentvolume-binder',
    'bootstrapsigner',
    'tokencleaner',
  ];
  return [
    `--kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    // No server of its own.
    '--secure-port=0',
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${credentials.serviceAccountKeyFile}`,
    `--root-ca-file=${credentials.caFile}`,
    `--controllers=*,${omitted.map((name) => `-${name}`).join(',')}`,
  ];
}

export function kwokFlags(kubeconfig: string, stages: string): string[] {
  return [`--kubeconfig=${kubeconfig}`, '--manage-all-nodes=true', `--config=${stages}`];
}
