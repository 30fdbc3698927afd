#!/bin/sh
# Prints a kubeconfig of the account sluice-read-back, made from the present context of the kubeconfig of an administrator.
# usage: read-back-kubeconfig.sh <kubeconfig>
set -eu
admin=$1
value() { kubectl --kubeconfig "$admin" config view --raw --minify --flatten --output "jsonpath={$1}"; }
token=$(kubectl --kubeconfig "$admin" --namespace default create token sluice-read-back --duration 720h)
cat <<END
apiVersion: v1
kind: Config
clusters:
  - name: cluster
    cluster:
      server: $(value .clusters[0].cluster.server)
      certificate-authority-data: $(value '.clusters[0].cluster.certificate-authority-data')
users:
  - name: sluice-read-back
    user:
      token: $token
contexts:
  - name: cluster
    context: { cluster: cluster, user: sluice-read-back }
current-context: cluster
END
