package main

import (
	"bytes"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

func TestBill(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"/proc/self/exe"}, &out))
	var bill cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&bill))
	require.Len(t, (*bill.Metadata.Component.Hashes)[0].Value, 64, "it is the bill of this program and of no other")
	names := map[string]bool{}
	for _, component := range *bill.Components {
		require.NotEmpty(t, component.Version)
		names[component.Name] = true
	}
	require.True(t, names["std"] && names["github.com/CycloneDX/cyclonedx-go"], names)

	require.Error(t, run([]string{"main_test.go"}, &out))
	require.Error(t, run(nil, &out))
}
