package containerdtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// Image is a container image with busybox in /bin, and links for its applets.
type Image struct {
	// Name is the name in manifests: nginx:1.16.1 means docker.io/library/nginx:1.16.1.
	Name string
	// Command runs in a container that sets no command.
	Command []string
	// StopSignal is the signal that stops a container, such as SIGQUIT; "" means SIGTERM.
	StopSignal string
}

// pauseImage returns the image of the sandboxes. A sandbox only has to keep running.
func pauseImage() Image { return Image{Name: pauseName, Command: []string{"/bin/sleep", "1000000"}} }

// applets returns the programs of busybox that the tests' scripts use. Each gets a link in /bin.
func applets() []string {
	return []string{"cat", "date", "echo", "false", "kill", "ls", "sh", "sleep", "touch", "true", "wget"}
}

// manifestEntry describes an image in manifest.json of the docker archive format, which
// containerd can import.
type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// imageConfig is an image configuration (OCI image specification).
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Cmd        []string `json:",omitempty"`
		StopSignal string   `json:",omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// imageArchive returns an archive of all images, which share one layer.
func imageArchive(busybox string, images []Image) ([]byte, error) {
	layer, err := layerOf(busybox)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"layer.tar": layer}
	var manifest []manifestEntry
	for i, image := range images {
		config, err := json.Marshal(configOf(image, layer))
		if err != nil {
			return nil, fmt.Errorf("failed to write the config of image %q: %w", image.Name, err)
		}
		name := fmt.Sprintf("%d.json", i)
		files[name] = config
		manifest = append(manifest, manifestEntry{Config: name, RepoTags: []string{image.Name}, Layers: []string{"layer.tar"}})
	}
	if files["manifest.json"], err = json.Marshal(manifest); err != nil {
		return nil, fmt.Errorf("failed to write the manifest of the images: %w", err)
	}
	return tarOf(func(w *tar.Writer) error {
		for name, content := range files {
			if err := writeFile(w, name, 0o644, content); err != nil {
				return err
			}
		}
		return nil
	})
}

// configOf returns the configuration of an image. layer is the tar of its only layer, whose digest the
// configuration contains.
func configOf(image Image, layer []byte) imageConfig {
	config := imageConfig{Architecture: runtime.GOARCH, OS: "linux"}
	config.Config.Cmd = image.Command
	config.Config.StopSignal = image.StopSignal
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}
	return config
}

// layerOf returns the layer that all images share as a tar: the program busybox, links to it, and an empty
// /tmp.
func layerOf(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("failed to read busybox: %w", err)
	}
	if err := checkStatic(busybox, program); err != nil {
		return nil, err
	}
	return tarOf(func(w *tar.Writer) error {
		for _, dir := range []string{"bin/", "tmp/"} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
				return err
			}
		}
		for _, applet := range applets() {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}); err != nil {
				return err
			}
		}
		return writeFile(w, "bin/busybox", 0o755, program)
	})
}

// checkStatic returns an error unless a program is statically linked. The busybox of Debian's package
// busybox is not, and would not find its libraries in an image.
func checkStatic(path string, program []byte) error {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s is not a program: %w", path, err)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is not static, install the Debian package busybox-static", path)
	}
	return nil
}

// tarOf returns the archive to which write adds files.
func tarOf(write func(*tar.Writer) error) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := write(w); err != nil {
		return nil, fmt.Errorf("failed to write an archive: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("failed to finish an archive: %w", err)
	}
	return buffer.Bytes(), nil
}

// writeFile adds a file to an archive.
func writeFile(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
