package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each figure in the pages of this repository is changed, and the check finds the change.
func TestWrongFigures(t *testing.T) {
	repo, err := open(t.Context(), "../../..")
	require.NoError(t, err)
	pages := map[string]string{}
	for _, name := range repo.match("", "*.md") {
		content, err := repo.read(name)
		require.NoError(t, err)
		pages[name] = string(content)
	}
	for _, f := range figures() {
		t.Run(f.says, func(t *testing.T) {
			pattern := f.pattern()
			found := 0
			for name, page := range pages {
				for _, at := range pattern.FindAllStringSubmatchIndex(page, -1) {
					for group := 2; group < len(at); group += 2 {
						found++
						// For example "four" becomes "four1", and v0.32 becomes v0.321. An upper bound becomes 1.
						figure := page[at[group]:at[group+1]] + "1"
						if pattern.SubexpIndex("below") > 0 {
							figure = "1"
						}
						problems, err := f.wrong(repo, page[:at[group]]+figure+page[at[group+1]:])
						require.NoError(t, err)
						require.Len(t, problems, 1, "%s: %s", name, page[at[0]:at[1]])
					}
				}
			}
			require.Positive(t, found, "no page says this any more")
		})
	}
}
